/**
 * An import of commands that do not end with `process.exit`. If the reader of the output ends early (`larder hubs list | head -1`),
 * the command ends at its next output, without a stack trace. Its later steps do not run.
 */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})
