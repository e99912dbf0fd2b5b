import { expect, test } from 'vitest'
import type { GpioLine } from '../../../protocol/model/hardware.ts'
import { createGpioBank } from '../../../simulator/physics/gpio-bank.ts'

const lines: GpioLine[] = [
  { name: 'main_lock', offset: 17, direction: 'out', activeLow: false },
  { name: 'main_door', offset: 27, direction: 'in', activeLow: true },
]

test('a hub drives outputs and cannot drive sensors', () => {
  const bank = createGpioBank(lines)
  expect(bank.drive('main_lock', 1)).toBe(true)
  expect(bank.drive('main_door', 1)).toBe(false)
  expect(bank.drive('nothing', 1)).toBe(false)
  expect(bank.levels()).toEqual({ main_lock: 1, main_door: 0 })
})

test('a listener receives each change once, with the side that drove the line', () => {
  const bank = createGpioBank(lines)
  const heard: unknown[] = []
  const remove = bank.onChange((...change) => heard.push(change))
  bank.drive('main_lock', 1)
  bank.drive('main_lock', 1)
  bank.set('main_door', 1)
  bank.set('main_lock', 0)
  remove()
  bank.set('main_door', 0)
  expect(heard).toEqual([
    ['main_lock', 1, 'hub'],
    ['main_door', 1, 'world'],
    ['main_lock', 0, 'world'],
  ])
})

test('an unknown line is a caller’s mistake and throws', () => {
  const bank = createGpioBank(lines)
  expect(() => bank.get('fridge_1_left_lock')).toThrow(RangeError)
  expect(() => bank.set('fridge_1_left_lock', 1)).toThrow(RangeError)
})

test('in-process lines watch sensors until they are closed, and closing changes no level', () => {
  const bank = createGpioBank(lines)
  const gpio = bank.asLines()
  let edges = 0
  gpio.watch('main_door', () => (edges += 1))
  gpio.watch('main_lock', () => (edges += 100))
  expect(gpio.write('main_lock', 1)).toBe(true)
  bank.set('main_door', 1)
  expect(gpio.read('main_door')).toBe(1)
  gpio.close()
  bank.set('main_door', 0)
  expect(edges).toBe(1)
  expect(gpio.read('main_door')).toBeUndefined()
  expect(gpio.write('main_lock', 0)).toBe(false)
  expect(bank.get('main_lock')).toBe(1)
})

test('deferred edges merge into one read of the level, and none arrives after closing', () => {
  const bank = createGpioBank(lines)
  const queue: (() => void)[] = []
  const gpio = bank.asLines((task) => queue.push(task))
  const seen: unknown[] = []
  gpio.watch('main_door', () => seen.push(gpio.read('main_door')))
  bank.set('main_door', 1)
  bank.set('main_door', 0)
  queue.splice(0).forEach((task) => task())
  expect(seen).toEqual([0, 0])
  bank.set('main_door', 1)
  gpio.close()
  queue.splice(0).forEach((task) => task())
  expect(seen).toHaveLength(2)
})
