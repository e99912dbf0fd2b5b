import { describe, expect, test } from 'vitest'
import { TestHub } from '../../world/hub.ts'

const RIGHT = 'fridge_1_right'

/** The right door of the fridge is unlocked by command for 30 s, and an order waits for the cabinet behind it. */
function unlocked(): TestHub {
  const bench = TestHub.ready()
  bench.command({ name: 'open_fridge', fridge: 1, side: 'right' })
  bench.queue(1, { 4: 1 })
  return bench
}

/** The door stands open. */
function opened(): TestHub {
  const bench = unlocked()
  expect(bench.room.act({ action: 'open_door', target: RIGHT })).toMatchObject({ ok: true })
  bench.run(5000)
  return bench
}

/** A row behind the door turns for an order of this number of units. */
function turning(units = 1): TestHub {
  const bench = TestHub.ready()
  bench.queue(1, { 4: units })
  expect(bench.runUntil(() => bench.dispenses().length > 0, 10_000)).toBe(true)
  return bench
}

describe('an open or unlocked fridge door', () => {
  test('behind an open or unlocked fridge door nothing is dispensed until it is closed and locked', () => {
    const bench = unlocked()
    bench.run(29_000)
    expect(bench.dispenses()).toEqual([])
    // The left and middle doors belong to the other cabinet.
    bench.queue(2, { 3: 1 })
    expect(bench.runUntil(() => bench.dispenses().length > 0, 10_000)).toBe(true)
    expect(bench.dispenses()[0]).toMatchObject({ device: 'cabinet-1' })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
  })

  test.each([500, 10])('nothing is dispensed behind a door that opens %i ms before its lock locks', (ms) => {
    const bench = unlocked()
    bench.run(30_000 - ms)
    expect(bench.room.act({ action: 'open_door', target: RIGHT })).toMatchObject({ ok: true })
    bench.run(20_000)
    expect(bench.dispenses()).toEqual([])
  })

  test('nothing is dispensed behind an unlocked door with a flickering contact', () => {
    const bench = opened()
    bench.fault('blinking_contact', RIGHT)
    bench.run(20_000)
    expect(bench.dispenses()).toEqual([])
  })

  test.each(['the hub restarts', 'its line is unreadable for a moment'])(
    'nothing is dispensed behind an open door with a flickering contact, although %s again and again',
    (what) => {
      const bench = opened()
      bench.fault('blinking_contact', RIGHT)
      for (let time = 0; time < 7; time += 1) {
        bench.run(20_070)
        if (what === 'the hub restarts') bench.restart()
        else {
          bench.blindLines.add(`${RIGHT}_door`)
          bench.run(1000)
          bench.blindLines.clear()
        }
      }
      bench.run(20_000)
      expect(bench.dispenses()).toEqual([])
    },
  )

  test('nothing is dispensed behind an open door after its contact becomes unreadable', () => {
    const bench = opened()
    bench.blindLines.add(`${RIGHT}_door`)
    bench.run(120_000)
    expect(bench.dispenses()).toEqual([])
  })

  test('nothing is dispensed behind an unlocked door after its lock becomes unreadable', () => {
    const bench = unlocked()
    bench.blindLines.add(`${RIGHT}_lock`)
    bench.run(120_000)
    expect(bench.dispenses()).toEqual([])
  })

  test('nothing is dispensed behind a door that stands open while the hub restarts without its lines', () => {
    const bench = opened()
    bench.hasLines = false
    bench.restart()
    bench.run(5000)
    bench.hasLines = true
    bench.run(5000)
    expect(bench.dispenses()).toEqual([])
  })

  test('no row is tested behind an unlocked door, although its contact cannot be read', () => {
    const bench = TestHub.ready()
    bench.blindLines.add(`${RIGHT}_door`)
    bench.run(65_000)
    bench.core.unlockDoor(RIGHT, 30_000)
    const { results } = bench.command({ name: 'test_dispense', location: { cabinet: 2, shelf: 1, row: 2 } })
    expect(results).toMatchObject([{ outcome: 'refused', reason: 'interlock' }])
  })

  test('an order continues as soon as the contact shows the door shut', () => {
    const bench = unlocked()
    bench.run(29_900)
    bench.room.act({ action: 'open_door', target: RIGHT })
    bench.run(1000)
    bench.room.act({ action: 'close_door', target: RIGHT })
    expect(bench.runUntil(() => bench.dispenses().length > 0, 3000)).toBe(true)
  })

  test('a contact that cannot be read stops no sale if it last showed the door shut', () => {
    const bench = TestHub.ready()
    bench.blindLines.add(`${RIGHT}_door`)
    bench.run(65_000)
    bench.queue(1, { 4: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
  })
})

describe('a row that turns behind a fridge door', () => {
  test('no command and no person unlocks a fridge door while a row behind it turns', () => {
    const bench = turning()
    expect(bench.command({ name: 'open_fridge', fridge: 1, side: 'right' }).results).toMatchObject([
      { outcome: 'refused', reason: 'interlock' },
    ])
    const why = expect.stringMatching(/^A row behind this door may still turn\. .* in 1\d s/) as string
    expect(bench.core.unlockDoor(RIGHT, 30_000)).toEqual({ ok: false, reason: 'not_now', why })
    expect(bench.room.gpio.get(`${RIGHT}_lock`)).toBe(0)
    expect(bench.core.unlockDoor('fridge_1_left', 1000)).toEqual({ ok: true })
  })

  test('a person who was refused gets in when the row has stopped, although an order waits for more units', () => {
    const bench = turning(4)
    expect(bench.core.unlockDoor(RIGHT, 30_000).ok).toBe(false)
    expect(bench.runUntil(() => bench.core.unlockDoor(RIGHT, 10_000).ok, 15_000)).toBe(true)
    expect(bench.dispenses()).toHaveLength(1)
    bench.run(9000)
    expect(bench.dispenses()).toHaveLength(1)
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 60_000)).toBe(true)
  })

  test('an order continues if the person who was refused does not return', () => {
    const bench = turning(2)
    expect(bench.core.unlockDoor(RIGHT, 30_000).ok).toBe(false)
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 90_000)).toBe(true)
  })

  test('a fridge door unlocks after the maximum time of a motion, although its controller does not answer', () => {
    const bench = turning()
    bench.room.power('off', 'vending')
    bench.run(2000)
    expect(bench.core.unlockDoor(RIGHT, 30_000)).toMatchObject({ ok: false, reason: 'not_now' })
    bench.run(15_000)
    expect(bench.core.unlockDoor(RIGHT, 30_000)).toEqual({ ok: true })
  })

  test('a fridge door stays locked while a row turns that only the lost journal contains', () => {
    const bench = turning()
    bench.restartOn()
    expect(bench.core.unlockDoor(RIGHT, 30_000)).toMatchObject({ ok: false, reason: 'not_now' })
    expect(bench.runUntil(() => bench.core.unlockDoor(RIGHT, 30_000).ok, 16_000)).toBe(true)
  })

  test('a restarted hub unlocks a fridge door as soon as the cabinets behind it are connected', () => {
    const bench = TestHub.ready()
    bench.restart()
    expect(bench.runUntil(() => bench.core.unlockDoor(RIGHT, 30_000).ok, 5000)).toBe(true)
  })
})
