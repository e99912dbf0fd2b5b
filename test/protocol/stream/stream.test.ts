import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ENTRY_BYTES, World } from './world.ts'
import type { Act, WorldOptions } from './world.ts'

const which = fc.nat({ max: 1000 })
const traffic: fc.WeightedArbitrary<Act>[] = [
  { weight: 6, arbitrary: fc.constant<Act>({ type: 'append' }) },
  { weight: 10, arbitrary: which.map((which): Act => ({ type: 'deliver', which })) },
  { weight: 3, arbitrary: which.map((which): Act => ({ type: 'drop', which })) },
  { weight: 3, arbitrary: which.map((which): Act => ({ type: 'duplicate', which })) },
  { weight: 3, arbitrary: fc.constant<Act>({ type: 'timeout' }) },
  { weight: 2, arbitrary: fc.constant<Act>({ type: 'connect' }) },
  { weight: 2, arbitrary: fc.constant<Act>({ type: 'hello' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ type: 'disconnect' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ type: 'restart' }) },
]
const copies: fc.WeightedArbitrary<Act>[] = [
  { weight: 1, arbitrary: fc.constant<Act>({ type: 'backup' }) },
  { weight: 1, arbitrary: fc.constant<Act>({ type: 'restore' }) },
]
const acts = (...kinds: fc.WeightedArbitrary<Act>[]): fc.Arbitrary<Act[]> =>
  fc.array(fc.oneof(...kinds), { maxLength: 150, size: 'max' })
const limits = fc.record({
  batchEntries: fc.integer({ min: 1, max: 4 }),
  batchBytes: fc.integer({ min: 1, max: 50 }),
  windowBytes: fc.integer({ min: 1, max: 60 }),
  maxWindowBytes: fc.integer({ min: 60, max: 200 }),
  promptMs: fc.constant(20),
  askMs: fc.constant(1000),
  maxAskMs: fc.constant(30_000),
})
const start: Act[] = [{ type: 'connect' }, { type: 'deliver', which: 0 }, { type: 'deliver', which: 0 }]

function play(options: WorldOptions, schedule: readonly Act[]): World {
  const world = new World(options)
  for (const act of [...start, ...schedule]) world.act(act)
  return world
}

describe('I4: under any network faults and restarts', () => {
  test('a reliable stream applies every entry exactly once and in order, and deletes none before', () => {
    fc.assert(
      fc.property(limits, acts(...traffic), (limits, schedule) => {
        const world = play({ limits, lossy: false, ring: Infinity }, schedule)
        expect(world.settle(200)).toBe(true)
        expect(world.violations).toEqual([])
        expect(world.forks).toBe(0)
        expect(world.applied.map(({ value }) => value)).toEqual(
          Array.from({ length: world.appended }, (_, index) => index),
        )
      }),
      { numRuns: 3000 },
    )
  })

  test('a lossy stream applies each entry at most once and in order, and all entries that its ring still has', () => {
    fc.assert(
      fc.property(limits, fc.integer({ min: 1, max: 8 }), acts(...traffic), (limits, ring, schedule) => {
        const world = play({ limits, lossy: true, ring }, schedule)
        expect(world.settle(200)).toBe(true)
        expect(world.forks).toBe(0)
        const values = world.applied.map(({ value }) => value)
        expect(values).toEqual([...new Set(values)].sort((a, b) => a - b))
        const newest = Array.from(
          { length: Math.min(ring, world.appended) },
          (_, n) => world.appended - 1 - n,
        )
        expect(newest.filter((value) => !values.includes(value))).toEqual([])
      }),
      { numRuns: 3000 },
    )
  })

  test('a sender restored from a copy loses no entry that it still has, and mixes no histories', () => {
    let forks = 0
    fc.assert(
      fc.property(limits, acts(...traffic, ...copies), (limits, schedule) => {
        const world = play({ limits, lossy: false, ring: Infinity }, schedule)
        expect(world.settle(300)).toBe(true)
        expect(world.violations).toEqual([])
        forks += world.forks
        const values = new Set(world.applied.map(({ value }) => value))
        for (let value = 0; value < world.appended; value++)
          if (!world.lost.has(value)) expect(values.has(value)).toBe(true)
        for (const epoch of new Set(world.applied.map((entry) => entry.epoch))) {
          const own = world.applied.filter((entry) => entry.epoch === epoch).map(({ value }) => value)
          expect(new Set(own).size).toBe(own.length)
        }
      }),
      { numRuns: 3000 },
    )
    expect(forks).toBeGreaterThan(100)
  })
})

const roomy = {
  batchEntries: 2,
  batchBytes: 1000,
  windowBytes: 4000,
  maxWindowBytes: 8000,
  promptMs: 1000,
  askMs: 1000,
  maxAskMs: 8000,
}
const reliable: WorldOptions = { limits: roomy, lossy: false, ring: Infinity }
const times = (count: number, act: Act): Act[] => Array.from({ length: count }, () => act)
const deliver: Act = { type: 'deliver', which: 0 }
const append: Act = { type: 'append' }

describe('forks', () => {
  test('the sender detects a fork although the copy has outgrown the lost entries, before it deletes an entry', () => {
    const world = play(reliable, [
      { type: 'backup' },
      ...times(3, append),
      ...times(20, deliver),
      { type: 'restore' },
      ...times(10, append),
    ])
    expect(world.applied).toHaveLength(3)
    expect(world.settle(50)).toBe(true)
    expect(world.forks).toBe(1)
    expect(world.violations).toEqual([])
    const fresh = world.applied.filter(({ epoch }) => epoch === world.epoch).map(({ value }) => value)
    expect(fresh).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  })

  test('a copy as old as the original causes no fork', () => {
    const world = play(reliable, [
      ...times(3, append),
      { type: 'backup' },
      ...times(20, deliver),
      { type: 'restore' },
    ])
    expect(world.settle(50)).toBe(true)
    expect(world.forks).toBe(0)
    expect(world.applied.map(({ value }) => value)).toEqual([0, 1, 2])
  })

  test('the sender informs a receiver that lost acknowledged entries', () => {
    const world = play(reliable, [...times(4, append), ...times(20, deliver)])
    const { epoch } = world
    world.act({ type: 'connect' })
    world.receiverLoses(2)
    expect(world.settle(50)).toBe(true)
    expect(world.forks).toBe(1)
    expect(world.epoch).not.toBe(epoch)
  })
})

describe('I8: a gap', () => {
  test('a receiver with a gap asks for a resend, and gets one answer for any number of later batches', () => {
    const world = play(reliable, times(20, append))
    expect(world.sentBatches).toBe(20)
    world.act({ type: 'drop', which: 0 })
    for (const act of times(19, deliver)) world.act(act)
    expect(world.applied).toEqual([])
    // Nineteen acknowledgements now request a resend; the first is answered with the window, in ten batches
    // of two.
    for (const act of times(19, deliver)) world.act(act)
    expect(world.sentBatches).toBe(30)
    for (const act of times(20, deliver)) world.act(act)
    expect(world.applied).toHaveLength(20)
    expect(world.kept).toEqual([])
  })
})

describe('silence', () => {
  test('a silent receiver is asked for its cursor; the sender sends no second copy on a slow line', () => {
    const world = play(reliable, times(6, append))
    const sent = world.sentBatches
    for (let round = 0; round < 5; round++) world.act({ type: 'timeout' })
    expect([world.asks, world.sentBatches]).toEqual([5, sent])
    expect(world.settled()).toBe(true)
    expect(world.sentBatches).toBe(sent)
  })

  test('entries that the answer lacks are lost, and are sent again', () => {
    const world = play(reliable, times(3, append))
    for (const act of times(3, { type: 'drop', which: 0 })) world.act(act)
    const sent = world.sentBytes
    world.act({ type: 'timeout' })
    expect(world.settled()).toBe(true)
    expect([world.applied.length, world.sentBytes]).toEqual([3, sent + 3 * ENTRY_BYTES])
  })

  test('new entries do not delay the question to a silent receiver', () => {
    const world = play(reliable, [append])
    expect(world.armedMs).toBe(1000)
    world.act(append)
    world.act({ type: 'timeout' })
    expect(world.armedMs).toBe(2000)
  })

  test('the time-out of a silent receiver doubles up to a limit, and is reset by progress', () => {
    const world = play(reliable, [append])
    const waits: (number | null)[] = []
    for (let round = 0; round < 5; round++) {
      waits.push(world.armedMs)
      world.act({ type: 'timeout' })
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 8000])
    world.act(append)
    while (world.state.base === 0) world.act(deliver)
    expect(world.armedMs).toBe(1000)
  })

  test('the sender has no time-out if no entry is outstanding', () => {
    const world = play(reliable, [append, deliver, deliver])
    expect(world.state.base).toBe(1)
    expect(world.armedMs).toBeNull()
  })
})

describe('the window', () => {
  const limits = { ...roomy, batchEntries: 100, windowBytes: 80, maxWindowBytes: 400, promptMs: 100 }
  /** A stream with entries that were appended before the connection. */
  const backlog = (): World =>
    play({ ...reliable, limits }, [{ type: 'disconnect' }, ...times(1000, append), ...start])
  /** Outstanding bytes after `rounds` acknowledgements that took `tookMs` each. */
  function after(rounds: number, tookMs: number): number {
    const world = backlog()
    for (let round = 0; round < rounds; round += 1) {
      world.act({ type: 'wait', ms: tookMs })
      const { inFlight } = world
      for (const act of times(inFlight, deliver)) world.act(act)
      const acks = world.inFlight
      for (const act of times(acks, deliver)) world.act(act)
    }
    return world.state.outstanding.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  test('the sender fills the window with batches of a quarter', () => {
    expect(backlog().state.outstanding.map(({ bytes }) => bytes)).toEqual([20, 20, 20, 20])
  })

  test('the window grows with timely acknowledgements, to its limit', () => {
    expect(after(1, 1)).toBeGreaterThan(100)
    expect(after(6, 1)).toBeGreaterThan(300)
    expect(after(20, 1)).toBeLessThanOrEqual(400)
  })

  test('the window stays with slow acknowledgements, and shrinks to its first size with very slow ones', () => {
    expect(after(6, 150)).toBeLessThanOrEqual(80)
    expect(after(6, 1000)).toBeLessThanOrEqual(80)
  })
})
