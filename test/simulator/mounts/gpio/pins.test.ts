import { expect, test } from 'vitest'
import type { Level } from '../../../../protocol/model/hardware.ts'
import { Errno } from '../../../../simulator/mounts/gpio/fuse-messages.ts'
import { createPins } from '../../../../simulator/mounts/gpio/pins.ts'
import { chipLabel, chipLines } from './mounted.ts'

function setUp(driven: string[] = []) {
  const levels = new Map<string, Level | undefined>(chipLines.map(({ name }) => [name, 0]))
  const woken: number[] = []
  const wiring = {
    isConnected: true,
    level: (name: string) => levels.get(name),
    isDriven: (name: string) => driven.includes(name),
    drive(name: string, level: Level) {
      if (wiring.isConnected) levels.set(name, level)
      return wiring.isConnected
    },
  }
  const chip = { label: chipLabel, base: 512, count: 54, lines: chipLines }
  const pins = createPins(chip, wiring, (pin) => woken.push(pin))
  return { pins, levels, woken, wiring }
}
const lock = 512 + 17
const door = 512 + 27
const invertedLock = 512 + 5

test('the registers survive an unexport: direction and level stay, edge and active_low do not', () => {
  const { pins, levels } = setUp()
  pins.export(lock)
  pins.write(lock, 'direction', 'high')
  pins.write(lock, 'active_low', '1')
  pins.unexport(lock)
  expect(pins.read(lock, 'value')).toBe(Errno.ENOENT)
  pins.export(lock)
  expect([pins.read(lock, 'direction'), pins.read(lock, 'value'), pins.read(lock, 'active_low')]).toEqual([
    'out',
    '1',
    '0',
  ])
  expect(levels.get('main_lock')).toBe(1)
})

test('a line that was driven before is an output from the start', () => {
  const { pins } = setUp(['main_lock'])
  pins.export(lock)
  pins.export(invertedLock)
  expect([pins.read(lock, 'direction'), pins.read(invertedLock, 'direction')]).toEqual(['out', 'in'])
})

test('an output that becomes an input falls back to its resting level, for any wiring', () => {
  const { pins, levels } = setUp()
  pins.export(invertedLock)
  pins.write(invertedLock, 'direction', 'low')
  expect(levels.get('fridge_1_left_lock')).toBe(1)
  pins.write(invertedLock, 'direction', 'in')
  expect([levels.get('fridge_1_left_lock'), pins.read(invertedLock, 'value')]).toEqual([0, '1'])
})

test('a sensor cannot be driven, nor can an output without the simulator', () => {
  const { pins, wiring } = setUp()
  pins.export(door)
  expect(pins.write(door, 'direction', 'out')).toBe(Errno.EPERM)
  pins.export(lock)
  pins.write(lock, 'direction', 'out')
  wiring.isConnected = false
  expect(pins.write(lock, 'value', '1')).toBe(Errno.EIO)
  expect(pins.read(lock, 'value')).toBe('0')
})

test('a line without a known level keeps its last level', () => {
  const { pins, levels, woken } = setUp()
  pins.export(door)
  pins.write(door, 'edge', 'both')
  levels.set('main_door', 1)
  pins.refresh()
  levels.set('main_door', undefined)
  pins.refresh()
  expect(pins.read(door, 'value')).toBe('1')
  expect(woken).toEqual([door])
})

test.each([
  ['rising', '0', [1]],
  ['falling', '0', [0]],
  ['both', '0', [1, 0]],
  ['none', '0', []],
  ['rising', '1', [0]],
  ['falling', '1', [1]],
] as const)(
  'a reader of the edge %s with active_low %s is woken only at the matching levels',
  (edge, activeLow, wakingLevels) => {
    const { pins, levels, woken } = setUp()
    pins.export(door)
    pins.write(door, 'active_low', activeLow)
    pins.write(door, 'edge', edge)
    const heard: Level[] = []
    for (const level of [1, 0] as const) {
      levels.set('main_door', level)
      pins.refresh()
      if (woken.splice(0).length > 0) heard.push(level)
    }
    expect(heard).toEqual(wakingLevels)
  },
)

test('a line that is watched for edges cannot become an output', () => {
  const { pins } = setUp()
  pins.export(lock)
  pins.write(lock, 'edge', 'both')
  expect(pins.write(lock, 'direction', 'out')).toBe(Errno.EIO)
  expect(pins.read(lock, 'direction')).toBe('in')
})
