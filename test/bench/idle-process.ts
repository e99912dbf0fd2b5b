// What any program of Node takes that does nothing at all; beside it `footprint.ts` sets the hub.
process.once('disconnect', () => process.exit(0))
process.send!('ready')
