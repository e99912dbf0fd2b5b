import { describe, expect, test } from 'vitest'
import { judgeFridge } from '../../../edge/core/fridges.ts'
import { config, HubBench } from './hub-bench.ts'

const MINUTE = 60_000

const settled = (bench: HubBench, order = 1): boolean =>
  !['queued', 'preparing', 'recovering'].includes(bench.phase(order) ?? 'queued')

/** What was told of the fridge and its cabinets, oldest first. */
const told = (bench: HubBench): string[] =>
  bench.entries('state').flatMap(({ state }) => {
    if (state.of === 'fridge') return [`fridge ${state.state}`]
    return state.of === 'cabinet' && state.cabinet === 1 ? [`cabinet ${state.withheld}`] : []
  })

const alarms = (bench: HubBench): string[] =>
  bench.entries('alarm').map(({ code, subject, raised }) => `${code} ${subject} ${raised}`)

const status = (bench: HubBench) => bench.core.health().fridges[0]

/** Lets the fridge warm until it is above its limit. */
function warm(bench: HubBench): string {
  const fault = bench.fault('warm_fridge')
  bench.runUntil(() => told(bench).includes('fridge warm'), 60 * MINUTE)
  return fault
}

test.each<[string, number, number, boolean, number, string]>([
  ['cold', 5, 40 * MINUTE, false, 0, 'cold'],
  ['warm for a while', 5.1, 29 * MINUTE, false, 0, 'warm'],
  ['warm for too long', 5.1, 30 * MINUTE, false, 0, 'shutoff'],
  ['found warm after nobody knows how long', 5.1, MINUTE, true, MINUTE, 'shutoff'],
  ['found warm, while the cloud may yet say how long it was', 5.1, 90 * MINUTE, true, MINUTE - 1, 'warm'],
  ['found cold', 4, 90 * MINUTE, true, MINUTE, 'cold'],
])(
  'a fridge that is %s (%f °C, warm for %i ms)',
  (_, celsius, warmForMs, isLengthUnknown, readForMs, kind) => {
    const facts = { celsius, limitCelsius: 5, warmForMs, isLengthUnknown, readForMs }
    const verdict = judgeFridge(facts, { healthShutoffMs: 30 * MINUTE, clockWaitMs: MINUTE })
    expect(verdict.kind).toBe(kind)
  },
)

describe('a fridge above its limit', () => {
  test('sells for half an hour, and then nothing before a person confirms, however cold it is', () => {
    const bench = HubBench.ready()
    const fault = warm(bench)
    expect(status(bench)).toMatchObject({ status: 'healthy', shutoff: false })
    bench.run(29 * MINUTE)
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

  test('that becomes cold again in time begins anew', () => {
    const bench = HubBench.ready()
    const fault = warm(bench)
    bench.run(5 * MINUTE)
    bench.room.faults.clear(fault)
    bench.run(60 * MINUTE)
    expect(told(bench)).not.toContain('fridge shutoff')
    expect(told(bench).at(-1)).toBe('fridge cold')
    expect(alarms(bench)).toEqual(['fridge_warm fridge 1 true', 'fridge_warm fridge 1 false'])
  })

  test('waiting orders lose the lines that are in it, before anything moves', () => {
    const bench = HubBench.ready()
    warm(bench)
    bench.run(28 * MINUTE)
    bench.fault('silent_port', 'vending', { for_ms: 6 * MINUTE })
    bench.run(MINUTE)
    bench.queue(1, { 4: 2 })
    bench.run(4 * MINUTE)
    expect(bench.entries('order.failed')).toMatchObject([{ lines: [{ dropped: 0, doubtful: 0 }] }])
    expect(bench.dispenses()).toEqual([])
  })

  test('a person in the cloud confirms what was shut off before that, and nothing later', () => {
    const bench = HubBench.ready()
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
    // It is still too warm: the half hour begins anew.
    bench.run(31 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: true })
  })
})

describe('after a power cut', () => {
  test('the shutoff holds, and the half hour goes on where the cloud says how long it was', () => {
    const bench = HubBench.ready()
    bench.core.setCloudClock(bench.core.cloudNow(), { passing: false })
    warm(bench)
    bench.run(20 * MINUTE)
    const wallBefore = bench.core.cloudNow()
    bench.kill()
    bench.clock.advance(5 * MINUTE)
    bench.begin()
    bench.run(1000)
    bench.core.setCloudClock(wallBefore + 5 * MINUTE, { passing: false })
    bench.run(3 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: false })
    bench.run(3 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: true })
    bench.restart()
    bench.run(5000)
    expect(status(bench)).toMatchObject({ status: 'fault', shutoff: true })
    expect(told(bench).filter((line) => line === 'fridge shutoff')).toHaveLength(1)
  })

  test('a fridge that is found warm is shut off where nobody says how long it was, one that is found cold is not', () => {
    const bench = HubBench.ready()
    bench.run(5 * MINUTE)
    bench.restart()
    bench.run(10 * MINUTE)
    expect(status(bench)).toMatchObject({ status: 'healthy', shutoff: false })
    bench.kill()
    bench.fault('warm_fridge')
    bench.clock.advance(15 * MINUTE)
    bench.begin()
    bench.run(30_000)
    expect(status(bench)).toMatchObject({ shutoff: false })
    bench.run(60_000)
    expect(status(bench)).toMatchObject({ status: 'fault', shutoff: true })
  })
})

test('temperatures go to the telemetry once a minute, with the extremes since', () => {
  const bench = HubBench.ready()
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
