import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { OnoffLines } from '../../../../edge/hardware/gpio/onoff-lines.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { virtualRuntime } from '../../../world/clock.ts'

/**
 * Runs where `/sys/class/gpio` is an empty, writable folder. The kernel refuses to read pin 1, to watch pin 2, and to
 * invert pin 3. Tries for half an hour to open them. Prints the lines that failed, and the pins' files that are still open.
 */
const root = '/sys/class/gpio'

mkdirSync(`${root}/gpiochip0`)
writeFileSync(`${root}/gpiochip0/label`, 'chip\n')
writeFileSync(`${root}/gpiochip0/base`, '0\n')
for (const [pin, direction] of [
  ['gpio1', 'in'],
  ['gpio2', 'in'],
  ['gpio3', 'out'],
] as const) {
  mkdirSync(`${root}/${pin}`)
  writeFileSync(`${root}/${pin}/direction`, `${direction}\n`)
  writeFileSync(`${root}/${pin}/active_low`, '0\n')
  writeFileSync(`${root}/${pin}/edge`, 'both\n')
}
// The first byte of a process's memory: EIO.
symlinkSync('/proc/self/mem', `${root}/gpio1/value`)
// A regular file: `epoll` refuses it.
writeFileSync(`${root}/gpio2/value`, '0\n')
writeFileSync(`${root}/gpio3/value`, '0\n')
// Every write fails.
rmSync(`${root}/gpio3/active_low`)
symlinkSync('/proc/version', `${root}/gpio3/active_low`)

const runtime = virtualRuntime()
const failing: unknown[] = []
const lines = new OnoffLines({
  hardware: {
    chipLabel: 'chip',
    lines: [
      { name: 'main_door', offset: 1, direction: 'in', activeLow: false },
      { name: 'fridge_1_left_door', offset: 2, direction: 'in', activeLow: false },
      { name: 'main_lock', offset: 3, direction: 'out', activeLow: true },
    ],
  },
  runtime,
  log: { ...silentLog, error: (record) => void failing.push((record as { line?: string }).line) },
})
runtime.clock.advance(30 * 60_000)
lines.close()

const openFiles = readdirSync('/proc/self/fd')
  .map((number) => targetOf(`/proc/self/fd/${number}`))
  .filter((path) => path.startsWith(root) || path.endsWith('/mem'))
process.stdout.write(JSON.stringify({ failing, openFiles }))

function targetOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    // The descriptor of the folder itself.
    return ''
  }
}
