import { expect, test } from 'vitest'
import { Doors } from '../../../edge/hardware/doors.ts'
import { lockAll } from '../../../edge/hardware/lock-all.ts'
import { noCheckpoint } from '../../../protocol/model/checkpoint.ts'
import type { GpioLines, Level } from '../../../protocol/model/hardware.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { defaultCoreSettings } from '../../../protocol/settings/hub-limits.ts'
import { simulatedHardware } from '../../simulation/hardware.ts'
import { virtualRuntime } from '../../world/clock.ts'

/** Lines with these levels; driven levels are recorded. A line without a level cannot be read. */
function linesAt(levels: Record<string, Level>) {
  const driven: string[] = []
  const gpio: GpioLines = {
    read: (name) => levels[name],
    write: (name, level) => driven.push(`${name} ${level}`) > 0,
    watch: () => () => {},
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

test('a stopped hub watches no line any more, however often it starts in one process', () => {
  const watched = new Set<() => void>()
  const gpio: GpioLines = {
    read: () => 0,
    write: () => true,
    watch(_name, listener) {
      watched.add(listener)
      return () => void watched.delete(listener)
    },
    close() {},
  }
  const lines = simulatedHardware.gpio.lines.map(({ name }) => name)
  const { clock } = virtualRuntime(1)
  const silent = () => {}
  const events = { onMoved: silent, onChange: silent, onSeen: silent, onShut: silent, onTrouble: silent }
  const start = (): Doors => {
    const options = {
      gpio,
      lines,
      openBefore: [],
      clock,
      settings: defaultCoreSettings,
      checkpoint: noCheckpoint,
      log: silentLog,
    }
    const doors = new Doors(options, events)
    doors.start()
    return doors
  }
  const first = start()
  const count = watched.size
  expect(count).toBeGreaterThan(0)
  first.stop()
  for (let life = 0; life < 10; life++) start().stop()
  expect(watched.size).toBe(0)
  start()
  expect(watched.size).toBe(count)
})
