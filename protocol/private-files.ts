/**
 * Imported first by every program that keeps something: databases, journals, logs and secrets are its own user's alone,
 * files 0600 and folders 0700, whatever the shell's umask is.
 */
process.umask(0o077)
