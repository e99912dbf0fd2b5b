/**
 * The first import of every program that stores files. Databases, journals, logs and secrets belong only to the
 * program's user: files 0600 and folders 0700, whatever the shell's umask is.
 */
process.umask(0o077)
