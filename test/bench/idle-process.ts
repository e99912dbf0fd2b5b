// Baseline of `footprint.ts`: a Node program without any work.
process.once('disconnect', () => process.exit(0))
process.send!('ready')
