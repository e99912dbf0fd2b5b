import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  isAllSeen,
  judge,
  observedText,
  type Observation,
} from '../../../edge/core/acceptance/observation.ts'
import { stepsOf, type Check } from '../../../edge/core/acceptance/steps.ts'
import { deviceId } from '../../../protocol/model/hardware.ts'
import { simulatedHardware } from '../../simulation/hardware.ts'
import { uuid } from '../../support/uuid.ts'
import { begun, emptyBins, handsIn, last, makeRoom, open, stepOf, take, useDoor } from './acceptance-bench.ts'
import { TestHub } from '../../world/hub.ts'

describe('the steps of an acceptance', () => {
  const steps = stepsOf(simulatedHardware)

  test('every controller, door, lock, sensor, fridge, bin, lift and row has its own step', () => {
    expect(new Set(steps.map(({ id }) => id)).size).toBe(steps.length)
    const ids = steps.map(({ id }) => id)
    for (const { id, devices } of simulatedHardware.controllers) {
      expect(ids).toContain(`controller/${id}`)
      for (const device of devices) {
        const of = `${device.number}`
        if (device.kind === 'fridge') expect(ids).toContain(`temperature/${of}`)
        if (device.kind === 'bin')
          expect(ids).toEqual(
            expect.arrayContaining([`open/${of}`, `content/${of}`, `close/${of}`, `lift/${of}`]),
          )
        if (device.kind === 'cabinet')
          for (const { shelf, rows } of device.shelves)
            for (let row = 1; row <= rows; row++) expect(ids).toContain(`row/${of}/${shelf}/${row}`)
        expect(steps.some(({ part }) => part === deviceId(device).replace('-', ' '))).toBe(true)
      }
    }
    for (const { name } of simulatedHardware.gpio.lines)
      expect(ids).toContain(`door/${name.replace(/_(lock|door)$/, '')}`)
  })

  test('steps that others depend on come first: controllers, then bins, then the rows above them', () => {
    const kinds = [...new Set(steps.map(({ id }) => id.split('/')[0]))]
    expect(kinds).toEqual([
      'controller',
      'locks',
      'door',
      'temperature',
      'open',
      'content',
      'close',
      'lift',
      'row',
    ])
  })

  test('a step with a motion requires stopped orders, and a step without one does not', () => {
    for (const { id, moves } of steps)
      expect([id, moves]).toEqual([id, !/^(controller\/|temperature\/|locks$)/.test(id)])
  })
})

describe('the judgement of observations', () => {
  const before = (more: Record<string, string> = {}) =>
    new Map(
      Object.entries({
        'bin 1 door': 'closed',
        'bin 2 door': 'closed',
        'bin 1 content': 'empty',
        'bin 2 content': 'empty',
        'bin 1 lift': 'down',
        'door main': 'locked',
        ...more,
      }),
    )
  const seen = (...pairs: [string, string][]) => pairs.map(([of, is]) => ({ of, is }))
  const of = (more: Partial<Observation>): Observation => ({
    before: before(),
    seen: [],
    end: 'carried_out',
    why: null,
    ...more,
  })
  const opening: Check = { of: 'open', bin: 1 }
  const main: Check = { of: 'door', door: 'main', hasLock: true, hasSensor: true }

  test('an observation agrees if only the right door opens', () => {
    expect(judge(opening, of({ seen: seen(['bin 1 door', 'open']) }))).toEqual({ agrees: true, because: [] })
  })

  test('an observation with a report of another bin does not agree, and names that bin', () => {
    const { agrees, because } = judge(
      opening,
      of({ seen: seen(['bin 2 door', 'open']), end: 'failed', why: 'timeout' }),
    )
    expect(agrees).toBe(false)
    expect(because.join(' ')).toMatch(
      /failed: timeout.*reported nothing.*bin 2 door: open. Are cables exchanged/,
    )
  })

  test('a sensor that is open before the action is reported as inverted', () => {
    const observation = of({
      before: before({ 'door main': 'open' }),
      seen: seen(['door main', 'unlocked'], ['door main', 'open']),
    })
    expect(judge(main, observation).because.join(' ')).toContain('is the sensor inverted?')
  })

  test('an observation of a door agrees if it opens, closes and is locked again', () => {
    const turns = seen(['door main', 'unlocked'], ['door main', 'open'], ['door main', 'unlocked'])
    expect(isAllSeen(main, { before: before(), seen: turns })).toBe(true)
    expect(judge(main, of({ seen: turns })).because).toEqual(['It is not locked again.'])
    expect(judge(main, of({ seen: [...turns, ...seen(['door main', 'locked'])] })).agrees).toBe(true)
    expect(isAllSeen(main, { before: before(), seen: turns.slice(0, 2) })).toBe(false)
  })

  test('an observation of a row agrees if one unit drops into the bin below', () => {
    const row: Check = { of: 'row', location: { cabinet: 1, shelf: 1, row: 1 } }
    const fell = { seen: seen(['bin 1 content', 'something']), bin: 1 }
    expect(judge(row, of({ ...fell, drops: 1 })).agrees).toBe(true)
    expect(judge(row, of({ ...fell, drops: 2 })).because).toEqual(['The drop sensor saw 2 units fall.'])
    expect(judge(row, of({ seen: seen(['bin 2 content', 'something']), bin: 1, drops: 1 })).agrees).toBe(
      false,
    )
  })

  test('an observation of a fridge agrees if it has a cold reading', () => {
    const fridge: Check = { of: 'temperature', fridge: 1, limitCelsius: 5 }
    expect(judge(fridge, of({ celsius: 4.2 })).agrees).toBe(true)
    expect(judge(fridge, of({ celsius: 7 })).because).toEqual(['It is warmer than 5 °C.'])
    expect(judge(fridge, of({})).because).toEqual(['The sensor reports nothing.'])
  })

  test('an observation of a stopped, refused or failed step never agrees, and the report states it', () => {
    const checks = stepsOf(simulatedHardware).filter(({ moves }) => moves)
    const readings = fc.constantFrom(...before().keys())
    const word = fc.constantFrom('open', 'closed', 'locked', 'unlocked', 'something', 'empty', 'up', 'down')
    fc.assert(
      fc.property(
        fc.constantFrom(...checks),
        fc.array(fc.record({ of: readings, is: word }), { maxLength: 6 }),
        fc.constantFrom('stopped', 'too_late', 'refused', 'failed', 'unknown'),
        ({ check }, changes, end) => {
          const observation = of({ seen: changes, end: end })
          expect(judge(check, observation).agrees).toBe(false)
          expect(observedText(check, observation).length).toBeGreaterThan(0)
        },
      ),
    )
  })
})

test('a healthy hub passes every step, and its report reaches the cloud once', () => {
  const bench = begun()
  for (const { id } of open(bench).steps) {
    if (id.startsWith('row/')) makeRoom(bench, id)
    take(bench, id, handsIn(bench, id))
    // Only the technician can see whether locks hold without power.
    const isSeen = id !== 'locks'
    expect([id, last(bench, id)]).toMatchObject([id, { agrees: isSeen }])
    if (!isSeen) expect(bench.core.acceptance.decide([id], 'passed', '')).toMatchObject({ ok: false })
    const remark = isSeen ? '' : 'Each door holds.'
    expect([id, bench.core.acceptance.decide([id], 'passed', remark)]).toEqual([id, { ok: true }])
  }
  emptyBins(bench)
  expect(bench.core.acceptance.end()).toEqual({ ok: true })
  expect(bench.core.acceptance.end()).toMatchObject({ ok: false })
  const [report, ...more] = bench.entries('maintenance.report')
  expect(more).toEqual([])
  expect(report).toMatchObject({
    name: 'Acceptance of hub 1',
    submitted_by: 'Ann',
    service_type: 'Commissioning',
    hub_tested: 'passed',
  })
  expect(report!.description).toContain('Software larder-edge test. Firmware: bins ')
  expect(report!.description).toContain('- Row 1/1/1 gives one unit: passed. The drop sensor saw 1 unit fall')
  // Tested units have left the shelf, and the books include them.
  expect(bench.stockErrors()).toEqual([])
  expect(bench.entries('alarm').filter(({ code }) => code === 'unexpected_drop')).toEqual([])
}, 60_000)

test('nothing moves while orders are accepted or in progress, and nothing moves without a command', () => {
  const bench = TestHub.ready()
  bench.core.acceptance.begin('Ann', null)
  expect(bench.core.acceptance.beginSteps(['open/1'])).toMatchObject({
    ok: false,
    why: expect.stringContaining('stop'),
  })
  expect(bench.core.acceptance.beginSteps(['controller/bins'])).toEqual({ ok: true })
  bench.core.hold('orders', true)
  bench.queue(1, { 3: 1 })
  expect(bench.core.acceptance.beginSteps(['open/1'])).toMatchObject({
    ok: false,
    why: 'An order is under way: let it end first.',
  })
  expect(bench.motions()).toHaveLength(bench.motions().length)
})

test('a door that stopped half way stays as long as no orders are accepted', () => {
  const bench = begun()
  bench.fault('jam', 'bin-1', { for_ms: 3000 })
  take(bench, 'open/1')
  expect(last(bench, 'open/1')).toMatchObject({
    agrees: false,
    observed: expect.stringContaining('It failed: jam'),
  })
  const moved = bench.motions().length
  bench.run(600_000)
  expect(bench.motions()).toHaveLength(moved)
  // A hub that accepts orders again with an open acceptance takes care of its bins.
  bench.core.hold('orders', false)
  bench.run(600_000)
  expect(bench.motions().length).toBeGreaterThan(moved)
})

test('an open acceptance withholds no order from its customer', () => {
  const bench = begun()
  bench.core.hold('orders', false)
  bench.queue(1, { 3: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1, 2] })
  bench.run(3000)
  bench.takeAll()
  bench.runUntil(() => bench.phase(1) === 'completed', 60_000)
  bench.run(60_000)
  expect(bench.core.health().bins.map(({ door, lift, order_id }) => [door, lift, order_id])).toEqual([
    ['closed', 'down', null],
    ['closed', 'down', null],
  ])
})

test('a step without an observation of the hub passes only with a remark, and a failed step can be repeated', () => {
  const bench = begun(['bin 1', 'bin 2'])
  const { acceptance } = bench.core
  expect(acceptance.decide(['open/1'], 'passed', '')).toMatchObject({ ok: false, reason: 'not_found' })
  const fault = bench.fault('jam_without_motion', 'bin-1')
  take(bench, 'open/1')
  expect(acceptance.decide(['open/1'], 'passed', ' ')).toMatchObject({ ok: false, reason: 'not_now' })
  expect(acceptance.decide(['open/1'], 'failed', 'it hums')).toEqual({ ok: true })
  bench.room.faults.clear(fault)
  take(bench, 'open/1')
  expect(acceptance.decide(['open/1'], 'passed', '')).toEqual({ ok: true })
  expect(stepOf(bench, 'open/1').attempts.map(({ verdict, remark }) => [verdict, remark])).toEqual([
    ['failed', 'it hums'],
    ['passed', ''],
  ])
  acceptance.end()
  const [report] = bench.entries('maintenance.report')
  expect(report).toMatchObject({ name: 'Acceptance of parts of hub 1', hub_tested: 'incomplete' })
  expect(report!.components_serviced).toEqual(['bin 1', 'bin 2'])
  expect(report!.description).toMatch(
    /its door opens: FAILED.* Remark: it hums\n.*its door opens, again: passed/,
  )
})

test('crossed bins and rows are visible only to the technician, because the hub moves the part that it names', () => {
  const bench = begun()
  const crossed = bench.fault('crossed_bins', 'bin-1')
  take(bench, 'open/1')
  expect(last(bench, 'open/1')).toMatchObject({ agrees: true })
  expect(bench.room.state().bins.map(({ door }) => door)).toEqual(['closed', 'open'])
  bench.core.acceptance.decide(['open/1'], 'failed', 'bin 2 opened')
  bench.room.faults.clear(crossed)
  bench.run(500)
  take(bench, 'close/2')
  take(bench, 'open/1')
  expect(bench.room.state().bins.map(({ door }) => door)).toEqual(['open', 'closed'])
})

test('the hub itself detects an inverted door sensor', () => {
  const bench = begun()
  bench.fault('inverted_sensor', 'main')
  bench.run(1000)
  take(bench, 'door/main', () => useDoor(bench, 'main'))
  expect(last(bench, 'door/main')).toMatchObject({
    agrees: false,
    observed: expect.stringContaining('is the sensor inverted?'),
  })
})

test('an acceptance continues after a restart, except for the step in progress', () => {
  const bench = begun()
  take(bench, 'open/1')
  bench.core.acceptance.decide(['open/1'], 'passed', 'fine')
  bench.core.acceptance.beginSteps(['content/1'])
  bench.restart()
  bench.run(3000)
  expect(bench.core.acceptance.state()).toMatchObject({ id: open(bench).id, running: null })
  expect(last(bench, 'open/1')).toMatchObject({ verdict: 'passed', remark: 'fine' })
  expect(stepOf(bench, 'content/1').attempts).toEqual([])
  take(bench, 'content/1', handsIn(bench, 'content/1'))
  expect(last(bench, 'content/1')).toMatchObject({ agrees: true })
})

test('a step that waits for a manual action can be stopped, and ends after its time', () => {
  const bench = begun()
  take(bench, 'open/1')
  bench.core.acceptance.beginSteps(['content/1'])
  expect(bench.core.acceptance.beginSteps(['lift/2'])).toMatchObject({
    ok: false,
    why: 'Another step is being carried out.',
  })
  expect(bench.core.acceptance.stop()).toEqual({ ok: true })
  expect(last(bench, 'content/1')).toMatchObject({
    agrees: false,
    observed: expect.stringContaining('waited no longer'),
  })
  take(bench, 'content/1')
  expect(last(bench, 'content/1')).toMatchObject({
    observed: expect.stringContaining('Nothing more was seen in time'),
  })
})

test('a row is tested over a free, empty and closed bin, and never twice at once', () => {
  const bench = begun()
  const results: string[] = []
  const tryRow = (bin: number) =>
    bench.core.operate(
      { name: 'test_dispense', location: { cabinet: 1, shelf: 1, row: 3 }, bin },
      ({ outcome, reason }) => results.push(`${outcome} ${reason}`),
    )
  bench.core.operate({ name: 'open_bin', bin: 1 }, () => {})
  bench.run(3000)
  tryRow(1)
  tryRow(2)
  tryRow(2)
  bench.run(10_000)
  expect(results).toEqual(['refused interlock', 'refused interlock', 'executed null'])
  expect(bench.dispenses()).toHaveLength(1)
})

test('a restored cloud gets the acceptance report again, under the same id', () => {
  const bench = begun(['bin 1'])
  bench.core.acceptance.end()
  bench.core.restartLedger('the cloud was restored')
  const ids = bench.entries('maintenance.report').map(({ report_id }) => report_id)
  expect(ids.length).toBeGreaterThan(1)
  expect(new Set(ids).size).toBe(1)
})
