import { describe, expect, test } from 'vitest'
import { judgeFridge, type FridgeFacts } from '../../../edge/core/fridges.ts'
import { TestHub } from '../../world/hub.ts'
import { config } from '../../world/hub-config.ts'

const MINUTE = 60_000

const settled = (bench: TestHub, order = 1): boolean =>
  !['queued', 'preparing', 'recovering'].includes(bench.phase(order) ?? 'queued')

/** States reported of the fridge and its cabinets, oldest first. */
const told = (bench: TestHub): string[] =>
  bench.entries('state').flatMap(({ state }) => {
    if (state.of === 'fridge') return [`fridge ${state.state}`]
    return state.of === 'cabinet' && state.cabinet === 1 ? [`cabinet ${state.withheld}`] : []
  })

const alarms = (bench: TestHub): string[] =>
  bench.entries('alarm').map(({ code, subject, raised }) => `${code} ${subject} ${raised}`)

const status = (bench: TestHub) => bench.core.health().fridges[0]

/** Warms the fridge above its limit. */
function warm(bench: TestHub): string {
  const fault = bench.fault('warm_fridge')
  bench.runUntil(() => told(bench).includes('fridge warm'), 60 * MINUTE)
  return fault
}

const limits = { healthShutoffMs: 30 * MINUTE, clockWaitMs: MINUTE, proofMs: 5 * MINUTE }
const steady: FridgeFacts = {
  proof: undefined,
  isUnread: false,
  unprovenForMs: 0,
  wasUnproven: false,
  isInherited: false,
  isLengthUnknown: false,
  watchedForMs: 60 * MINUTE,
}

test.each<[string, Partial<FridgeFacts>, string]>([
  ['that is proven cold', { proof: 'cold', wasUnproven: true, unprovenForMs: 29 * MINUTE }, 'cold'],
  ['with a recent last proof', { unprovenForMs: 4 * MINUTE }, 'cold'],
  ['with a last proof that is some minutes old', { unprovenForMs: 5 * MINUTE }, 'doubt'],
  ['that was unknown, and has read cold once since', { wasUnproven: true, unprovenForMs: MINUTE }, 'doubt'],
  ['that is proven warm', { proof: 'warm', unprovenForMs: MINUTE }, 'doubt'],
  ['that is warm for too long', { proof: 'warm', unprovenForMs: 30 * MINUTE }, 'shutoff'],
  ['that cannot be read', { isUnread: true, unprovenForMs: 5 * MINUTE }, 'doubt'],
  [
    'that cannot be read, whatever it proved before',
    { isUnread: true, proof: 'cold', unprovenForMs: 6 * MINUTE },
    'doubt',
  ],
  ['that cannot be read for too long', { isUnread: true, unprovenForMs: 30 * MINUTE }, 'shutoff'],
  [
    'with readings that prove nothing for too long',
    { unprovenForMs: 30 * MINUTE, wasUnproven: true },
    'shutoff',
  ],
  [
    'that is found after a long absence',
    { isInherited: true, unprovenForMs: 90 * MINUTE, watchedForMs: 1000 },
    'unproven',
  ],
  [
    'that is found warm after a long absence',
    { isInherited: true, proof: 'warm', unprovenForMs: 90 * MINUTE, watchedForMs: MINUTE },
    'shutoff',
  ],
  [
    'that is found after a long absence, and proves nothing for minutes',
    { isInherited: true, unprovenForMs: 90 * MINUTE, watchedForMs: 5 * MINUTE },
    'shutoff',
  ],
  [
    'that is found warm, while the cloud may yet report how long it was',
    {
      isInherited: true,
      isLengthUnknown: true,
      proof: 'warm',
      unprovenForMs: MINUTE,
      watchedForMs: MINUTE - 1,
    },
    'unproven',
  ],
  [
    'that has proven nothing after nobody knows how long',
    { isInherited: true, isLengthUnknown: true, unprovenForMs: MINUTE, watchedForMs: 1000 },
    'unproven',
  ],
  [
    'that cannot be read after nobody knows how long',
    { isInherited: true, isLengthUnknown: true, isUnread: true, watchedForMs: 1000 },
    'unproven',
  ],
  [
    'that is found warm after nobody knows how long',
    { isInherited: true, isLengthUnknown: true, proof: 'warm', unprovenForMs: MINUTE, watchedForMs: MINUTE },
    'shutoff',
  ],
])('a fridge %s is judged by its proofs', (_, facts, kind) => {
  expect(judgeFridge({ ...steady, ...facts }, limits).kind).toBe(kind)
})

describe('a fridge above its limit', () => {
  test('a warm fridge sells for half an hour, and then nothing before a person confirms it, at any temperature', () => {
    const bench = TestHub.ready()
    const fault = warm(bench)
    expect(status(bench)).toMatchObject({ status: 'healthy', shutoff: false })
    bench.run(28 * MINUTE)
    expect(told(bench).at(-1)).toBe('fridge warm')
    expect(alarms(bench)).toEqual(['fridge_warm fridge 1 true'])
    bench.queue(1, { 4: 1 })
    bench.runUntil(() => settled(bench))
    expect(bench.phase(1)).toBe('ready')
    bench.run(2 * MINUTE)
    expect(told(bench).slice(-2)).toEqual(['cabinet shutoff', 'fridge shutoff'])
    expect(status(bench)).toMatchObject({ status: 'fault', shutoff: true })
    expect(bench.core.stock().every(({ blocked }) => blocked === 'shutoff')).toBe(true)
    expect(alarms(bench)).toContain('health_shutoff fridge 1 true')
    bench.queue(2, { 4: 1 })
    bench.run(1000)
    expect(bench.entries('order.failed').at(-1)).toMatchObject({ reason: 'out_of_stock' })
    bench.room.faults.clear(fault)
    bench.run(60 * MINUTE)
    expect(status(bench)).toMatchObject({ status: 'fault', shutoff: true })
    expect(bench.core.confirmFridge(1)).toEqual({ ok: true })
    expect(bench.core.confirmFridge(1)).toEqual({ ok: false, reason: 'not_found' })
    expect(told(bench).slice(-2)).toEqual(['cabinet null', 'fridge cold'])
    expect(alarms(bench).at(-1)).toBe('health_shutoff fridge 1 false')
    bench.queue(3, { 4: 1 })
    bench.runUntil(() => settled(bench, 3))
    expect(bench.phase(3)).toBe('ready')
  })

  test('a warm fridge that becomes cold in time starts a new half hour at the next warming', () => {
    const bench = TestHub.ready()
    const fault = warm(bench)
    bench.run(5 * MINUTE)
    bench.room.faults.clear(fault)
    bench.run(60 * MINUTE)
    expect(told(bench)).not.toContain('fridge shutoff')
    expect(told(bench).at(-1)).toBe('fridge cold')
    expect(alarms(bench)).toEqual(['fridge_warm fridge 1 true', 'fridge_warm fridge 1 false'])
  })

  test('a shutoff removes the fridge’s lines from waiting orders before anything moves', () => {
    const bench = TestHub.ready()
    warm(bench)
    bench.run(28 * MINUTE)
    bench.fault('silent_port', 'vending', { for_ms: 6 * MINUTE })
    bench.run(MINUTE)
    bench.queue(1, { 4: 2 })
    bench.run(4 * MINUTE)
    expect(bench.entries('order.failed')).toMatchObject([{ lines: [{ dropped: 0, doubtful: 0 }] }])
    expect(bench.dispenses()).toEqual([])
  })

  test('a confirmation in the cloud ends an earlier shutoff, and no later one', () => {
    const bench = TestHub.ready()
    const before = bench.core.cloudNow()
    warm(bench)
    bench.run(31 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: true })
    const confirm = (at: number): void =>
      bench.apply({ kind: 'config', config: { ...config, confirmed_fridges: [{ fridge_number: 1, at }] } })
    confirm(before)
    expect(status(bench)).toMatchObject({ shutoff: true })
    confirm(bench.core.cloudNow())
    bench.run(1000)
    expect(status(bench)).toMatchObject({ shutoff: false })
    // The fridge is still too warm: the half hour starts again.
    bench.run(31 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: true })
  })

  test('a confirmation that a wrong clock of the cloud dated in the future ends no later shutoff', () => {
    const bench = TestHub.ready()
    warm(bench)
    bench.run(31 * MINUTE)
    const confirmed_fridges = [{ fridge_number: 1, at: bench.core.cloudNow() + 365 * 24 * 60 * MINUTE }]
    bench.apply({ kind: 'config', config: { ...config, confirmed_fridges } })
    expect(status(bench)).toMatchObject({ shutoff: false })
    bench.run(31 * MINUTE)
    // The owner changes another setting, and the configuration repeats the confirmation.
    bench.apply({ kind: 'config', config: { ...config, confirmed_fridges, disabled_bins: [2] } })
    expect(status(bench)).toMatchObject({ shutoff: true })
  })
})

/** Causes of a missing valid reading. */
const causes: Record<string, (bench: TestHub) => void> = {
  'with a probe without readings': (bench) => void bench.fault('broken_probe'),
  'with a probe that reports nonsense': (bench) =>
    void bench.fault('probe_outliers', 'fridge-1', { probability: 1 }),
  'with a silent controller': (bench) => void bench.fault('silent_port', 'cold'),
  'with a controller without power': (bench) => bench.room.power('off', 'cold'),
}

describe.each(Object.entries(causes))('a fridge %s', (cause, begin) => {
  test('a fridge without valid readings is unknown and an alarm after minutes, and sells nothing after half an hour', () => {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    begin(bench)
    bench.run(4 * MINUTE)
    expect(alarms(bench)).not.toContain('fridge_unreadable fridge 1 true')
    bench.run(2 * MINUTE)
    expect(status(bench)).toMatchObject({ temperature: null, shutoff: false })
    expect(status(bench)!.status).toMatch(cause.includes('controller') ? /offline/ : /unknown/)
    expect(alarms(bench)).toContain('fridge_unreadable fridge 1 true')
    expect(told(bench).at(-1)).toBe('fridge unknown')
    bench.run(22 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: false })
    bench.run(3 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: true })
    expect(told(bench)).toContain('cabinet shutoff')
    expect(bench.entries('alarm').filter(({ code }) => code === 'health_shutoff')).toMatchObject([
      { raised: true, detail: 'no valid reading for too long' },
    ])
    expect(alarms(bench).filter((line) => line.startsWith('fridge_unreadable'))).toHaveLength(1)
    bench.queue(1, { 4: 1 })
    bench.run(MINUTE)
    expect(bench.dispenses()).toEqual([])
  })

  test('a fridge without valid readings is shut off at the same time after a restart of the hub', () => {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    begin(bench)
    for (let minutes = 0; minutes < 28; minutes += 4) {
      bench.run(4 * MINUTE)
      bench.restart()
    }
    expect(status(bench)).toMatchObject({ shutoff: false })
    bench.run(8 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: true })
  })

  test('a fridge is known again after several stable readings, and not after the first', () => {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    begin(bench)
    bench.run(10 * MINUTE)
    bench.room.faults.clearAll()
    bench.room.power('on', 'cold')
    bench.run(20_000)
    expect(alarms(bench)).not.toContain('fridge_unreadable fridge 1 false')
    expect(status(bench)).toMatchObject({ temperature: null })
    bench.run(4 * MINUTE)
    expect(alarms(bench)).toContain('fridge_unreadable fridge 1 false')
    expect(status(bench)).toMatchObject({ status: 'healthy', shutoff: false })
    expect(status(bench)!.temperature).toBeCloseTo(4, 0)
    bench.run(40 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: false })
  })
})

describe('a board with firmware version 2, which reports only changes', () => {
  const old = new Map([['cold', 2]])

  test('a fridge with version 2 sells as long as its compressor moves the air', () => {
    const bench = TestHub.ready(1, old)
    bench.run(90 * MINUTE)
    expect(alarms(bench)).toEqual([])
    expect(status(bench)).toMatchObject({ status: 'healthy', shutoff: false })
    warm(bench)
    bench.run(31 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: true })
  })

  test('a fridge with version 2 is unknown after 15 minutes of silence, and sells nothing after half an hour', () => {
    const bench = TestHub.ready(1, old)
    bench.run(5 * MINUTE)
    bench.fault('broken_probe')
    bench.run(13 * MINUTE)
    expect(alarms(bench)).toEqual([])
    bench.run(4 * MINUTE)
    expect(status(bench)).toMatchObject({ status: 'unknown', temperature: null })
    expect(alarms(bench)).toEqual(['fridge_unreadable fridge 1 true'])
    bench.run(15 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: true })
  })
})

describe('single readings', () => {
  const read = (bench: TestHub, celsius: number): void =>
    bench.core.controllerEvents.onDevice('cold', { device: 'fridge-1', celsius })

  test('a single cold reading does not end a warm period', () => {
    const bench = TestHub.ready()
    warm(bench)
    const before = told(bench).length
    for (let minutes = 0; minutes < 30; minutes += 2) {
      bench.run(2 * MINUTE)
      read(bench, 4.5)
    }
    expect(told(bench).slice(before)).not.toContain('fridge cold')
    expect(status(bench)).toMatchObject({ shutoff: true })
  })

  test.each([6, 40, -50, 84])('a single warm reading does not start a warm period: %d °C', (celsius) => {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    for (let times = 0; times < 5; times++) {
      read(bench, celsius)
      bench.run(6 * MINUTE)
    }
    expect(told(bench)).not.toContain('fridge warm')
    expect(alarms(bench)).toEqual([])
    expect(status(bench)).toMatchObject({ status: 'healthy', shutoff: false })
  })

  test('rare readings are no proof: a fridge with one cold reading per ten minutes is shut off', () => {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    bench.fault('broken_probe')
    for (let minutes = 0; minutes < 36; minutes += 9) {
      bench.run(9 * MINUTE)
      read(bench, 4)
    }
    expect(status(bench)).toMatchObject({ shutoff: true })
  })
})

test('after hours without power nothing is sold before several readings prove the cold', () => {
  const bench = TestHub.ready()
  bench.core.setCloudClock(bench.core.cloudNow(), { passing: false })
  bench.run(5 * MINUTE)
  const before = bench.core.cloudNow()
  bench.kill()
  bench.clock.advance(120 * MINUTE)
  bench.begin()
  bench.core.setCloudClock(before + 120 * MINUTE, { passing: false })
  bench.run(10_000)
  bench.queue(1, { 4: 1 })
  bench.run(30_000)
  expect(bench.dispenses()).toEqual([])
  expect(told(bench)).toContain('cabinet silent')
  bench.run(2 * MINUTE)
  expect(told(bench).at(-1)).toBe('cabinet null')
  expect(bench.dispenses()).toHaveLength(1)
  expect(status(bench)).toMatchObject({ status: 'healthy', shutoff: false })
  expect(alarms(bench)).toEqual([])
})

test('temperatures are written to the telemetry once a minute, with the extremes since', () => {
  const bench = TestHub.ready()
  warm(bench)
  bench.run(10 * MINUTE)
  const { last } = bench.outbox.position('telemetry')
  const entries = bench.outbox
    .read('telemetry', last - 4, 5)
    .entries.map(({ body }) => JSON.parse(body) as { at: number; celsius: number; min: number; max: number })
  for (const [index, { at, celsius, min, max }] of entries.entries()) {
    expect(max).toBe(celsius)
    if (index === 0) continue
    expect(at - entries[index - 1]!.at).toBe(MINUTE)
    expect(min).toBe(entries[index - 1]!.celsius)
  }
})
