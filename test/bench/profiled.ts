import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { join } from 'node:path'

/**
 * Loaded before a measured program if `BENCH_PROFILE` names a folder. Writes the program's processor profile
 * there, one for each announced phase, and the last one at its end.
 */
const folder = process.env['BENCH_PROFILE']!
const session = new Session()
let phase = 'start'
let written = 0

/** The callback runs before the call returns: the inspector is in this process. */
function write(): void {
  session.post('Profiler.stop', (error, { profile }) => {
    if (error) throw error
    written += 1
    writeFileSync(join(folder, `${process.pid}-${written}-${phase}.cpuprofile`), JSON.stringify(profile))
  })
}

mkdirSync(folder, { recursive: true })
session.connect()
session.post('Profiler.enable')
session.post('Profiler.start')
process.once('exit', write)
process.on('message', (next: string) => {
  write()
  phase = next
  session.post('Profiler.start')
  process.send!(next)
})
// The measured program ends as it would without this module.
process.channel!.unref()
