import { expect, test } from 'vitest'
import { lockAll } from '../../../edge/hardware/doors.ts'
import type { GpioLines, Level } from '../../../protocol/model/hardware.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { simulatedHardware } from '../../simulation/hardware.ts'

/** Lines with these levels; driven levels are recorded. A line without a level cannot be read. */
function linesAt(levels: Record<string, Level>) {
  const driven: string[] = []
  const gpio: GpioLines = {
    read: (name) => levels[name],
    write: (name, level) => driven.push(`${name} ${level}`) > 0,
    watch() {},
    close() {},
  }
  return { gpio, driven }
}

const locks = ['main', 'fridge_1_left', 'fridge_1_middle', 'fridge_1_right'].map((door) => `${door}_lock`)

test('only the lines of unlocked locks are driven, to lock them', () => {
  const levels = Object.fromEntries(simulatedHardware.gpio.lines.map(({ name }) => [name, 0]))
  const { gpio, driven } = linesAt({ ...levels, main_door: 1, main_lock: 1, fridge_1_right_lock: 1 })
  lockAll(gpio, simulatedHardware.gpio.lines, silentLog)
  expect(driven).toEqual(['main_lock 0', 'fridge_1_right_lock 0'])
})

test('a lock with an unknown level is locked', () => {
  const { gpio, driven } = linesAt({})
  lockAll(gpio, simulatedHardware.gpio.lines, silentLog)
  expect(driven.toSorted()).toEqual(locks.map((lock) => `${lock} 0`).toSorted())
})
