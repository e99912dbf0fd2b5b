/**
 * An import of every command that prints a result. A reader that ends early (`larder hubs list | head -1`) ends the
 * command, without a stack trace. By then the command has done its work: results are printed last.
 */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})
