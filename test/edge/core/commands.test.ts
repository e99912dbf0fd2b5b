import { expect, test } from 'vitest'
import { uuid } from '../../support/uuid.ts'
import { Crash, TestHub } from '../../world/hub.ts'

test('each bin command moves its device, and returns the duration', () => {
  const bench = TestHub.ready()
  const expected = [
    ['open_bin', { door: 'open' }],
    ['close_bin', { door: 'closed' }],
    ['raise_bin', { lift: 'up' }],
    ['lower_bin', { lift: 'down' }],
  ] as const
  for (const [name, goal] of expected) {
    const { results, id } = bench.command({ name, bin: 2 })
    bench.runUntil(() => results.length > 0, 20_000)
    expect(results).toMatchObject([
      {
        command_id: id,
        outcome: 'executed',
        reason: null,
        data: { ...goal, duration_ms: expect.any(Number) },
      },
    ])
    expect(bench.entries('command.finished').at(-1)).toMatchObject({ command_id: id, outcome: 'executed' })
  }
  expect(bench.motions().map((act) => act.action)).toEqual([
    'open_door',
    'close_door',
    'raise_lift',
    'lower_lift',
  ])
})

test('a repeated command moves nothing and gets the first result', () => {
  const bench = TestHub.ready()
  const first = bench.command({ name: 'open_bin', bin: 1 }, uuid(1))
  const during = bench.command({ name: 'open_bin', bin: 1 }, uuid(1))
  bench.run(10_000)
  const after = bench.command({ name: 'open_bin', bin: 1 }, uuid(1))
  expect(during.results).toEqual(first.results)
  expect(after.results).toEqual(first.results)
  expect(bench.motions()).toHaveLength(1)
  expect(bench.entries('command.finished')).toHaveLength(1)
})

test('no command moves a bin that is being filled for an order', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 2 })
  bench.run(1000)
  expect(bench.phase(1)).toBe('preparing')
  for (const name of ['open_bin', 'close_bin', 'raise_bin', 'lower_bin'] as const) {
    const { results } = bench.command({ name, bin: 1 })
    expect(results).toMatchObject([{ outcome: 'refused', reason: 'interlock' }])
  }
  bench.runUntil(() => bench.phase(1) === 'ready')
  const { results } = bench.command({ name: 'lower_bin', bin: 1 })
  expect(results).toMatchObject([{ outcome: 'refused', reason: 'interlock' }])
})

test('no unit drops into an open bin or onto a raised lift', () => {
  const bench = TestHub.ready()
  bench.command({ name: 'raise_bin', bin: 1 })
  bench.command({ name: 'open_bin', bin: 2 })
  bench.run(6000)
  bench.queue(1, { 4: 2 })
  bench.run(4000)
  bench.fault('door_forced', 'bin-1')
  bench.runUntil(() => bench.phase(1) === 'ready')
  for (const act of bench.dispenses())
    expect(act.detail).toMatchObject({ bin_door: 'closed', bin_lift: 'down' })
  expect(bench.dispenses().map((act) => act.detail['bin'])).toEqual([1, 1])
})

test('a command to a bin with a silent controller is refused, and never runs later', () => {
  const bench = TestHub.ready()
  bench.room.power('off', 'bins')
  bench.run(10_000)
  const { results } = bench.command({ name: 'open_bin', bin: 1 })
  expect(results).toMatchObject([{ outcome: 'refused', reason: 'offline' }])
  bench.room.power('on', 'bins')
  bench.run(30_000)
  expect(bench.motions()).toEqual([])
})

test('an unknown bin is not found, and a status is read without a motion', () => {
  const bench = TestHub.ready()
  expect(bench.command({ name: 'open_bin', bin: 4 }).results).toMatchObject([
    { outcome: 'refused', reason: 'not_found' },
  ])
  expect(bench.command({ name: 'get_bin_status', bin: 1 }).results).toMatchObject([
    {
      outcome: 'executed',
      data: { bin_number: 1, status: 'healthy', door: 'closed', lift: 'down', order_id: null },
    },
  ])
})

test('a failed motion is a failed command with its reason', () => {
  const bench = TestHub.ready()
  bench.fault('jam', 'bin-1')
  const { results } = bench.command({ name: 'open_bin', bin: 1 })
  bench.run(10_000)
  expect(results).toMatchObject([{ outcome: 'failed', reason: 'fault', data: { fault: 'jam' } }])
})

test('after a crash at any point a command has moved at most once, and its outcome is reported', () => {
  for (let at = 0; at < 12; at++) {
    const bench = TestHub.ready()
    let passed = 0
    bench.onCheckpoint = (point) => {
      if (passed++ === at) throw new Crash(point)
    }
    bench.command({ name: 'open_bin', bin: 1 }, uuid(5))
    bench.run(5000)
    if (!bench.alive) bench.begin()
    bench.run(20_000)
    bench.command({ name: 'open_bin', bin: 1 }, uuid(5))
    bench.run(5000)
    expect(bench.motions().length, `crash at passing ${at}`).toBeLessThanOrEqual(1)
    const finished = bench.entries('command.finished')
    expect(finished, `crash at passing ${at}`).toHaveLength(1)
    const moved = bench.motions().length === 1
    expect(finished[0]?.outcome === 'executed', `crash at passing ${at}`).toBe(moved)
  }
})

test('a command is unknown if its controller lost its memory, and the door’s sensor resolves the operation', () => {
  const bench = TestHub.ready()
  const { results } = bench.command({ name: 'open_bin', bin: 1 })
  bench.run(600)
  bench.fault('memory_loss', 'bins')
  bench.run(20_000)
  expect(results).toMatchObject([{ outcome: 'unknown' }])
  expect(bench.entries('operation.unknown')).toHaveLength(1)
})

test('open_delivery opens the bins of a READY order only for this order', () => {
  const bench = TestHub.ready()
  expect(bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] }).results).toMatchObject([
    { outcome: 'refused', reason: 'not_found' },
  ])
  bench.queue(1, { 6: 5 })
  bench.run(100)
  expect(bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] }).results).toMatchObject([
    { outcome: 'refused', reason: 'interlock' },
  ])
  bench.runUntil(() => bench.phase(1) === 'ready')
  expect(bench.entries('order.ready')[0]?.bins).toEqual([1, 2])
  const { results } = bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1, 2, 3] })
  bench.run(5000)
  expect(results).toMatchObject([
    {
      outcome: 'executed',
      data: {
        results: [
          { bin_number: 1, success: true },
          { bin_number: 2, success: true },
          { bin_number: 3, success: false, error: 'not_found' },
        ],
      },
    },
  ])
  bench.takeAll()
  bench.run(20_000)
  expect(bench.phase(1)).toBe('completed')
  expect(bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] }).results).toMatchObject([
    { outcome: 'refused', reason: 'too_late' },
  ])
})

test('an order can be cancelled before it starts, and not afterwards', () => {
  const bench = TestHub.ready()
  bench.kill()
  bench.room.power('off', 'vending')
  bench.begin()
  bench.run(3000)
  bench.welcome()
  bench.queue(1, { 4: 1 })
  expect(bench.command({ name: 'cancel_order', order_id: uuid(1) }).results).toMatchObject([
    { outcome: 'executed' },
  ])
  expect(bench.command({ name: 'cancel_order', order_id: uuid(1) }).results).toMatchObject([
    { outcome: 'executed' },
  ])
  expect(bench.entries('order.cancelled')).toHaveLength(1)
  bench.queue(2, { 4: 1 })
  bench.apply({ kind: 'order.cancel', order_id: uuid(2) })
  expect(bench.phase(2)).toBe('cancelled')
  bench.room.power('on', 'vending')
  bench.queue(1, { 4: 1 })
  bench.run(20_000)
  expect(bench.dispenses()).toEqual([])
  bench.queue(3, { 4: 1 })
  bench.run(100)
  expect(bench.command({ name: 'cancel_order', order_id: uuid(3) }).results).toMatchObject([
    { outcome: 'refused', reason: 'too_late' },
  ])
  bench.apply({ kind: 'order.cancel', order_id: uuid(3) })
  expect(bench.command({ name: 'cancel_order', order_id: uuid(9) }).results).toMatchObject([
    { outcome: 'refused', reason: 'not_found' },
  ])
  expect(bench.runUntil(() => bench.phase(3) === 'ready')).toBe(true)
})

test.each([100, 400, 800])(
  'a customer who taps again %i ms after the first tap gets success, and the door opens once',
  (afterMs) => {
    const bench = TestHub.ready()
    bench.queue(1, { 4: 1 })
    bench.runUntil(() => bench.phase(1) === 'ready')
    const tap = () => bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] }).results
    const first = tap()
    bench.run(afterMs)
    const second = tap()
    expect(bench.runUntil(() => first.length > 0 && second.length > 0)).toBe(true)
    for (const [result] of [first, second])
      expect(result).toMatchObject({
        outcome: 'executed',
        data: { results: [{ bin_number: 1, success: true, error: null }] },
      })
    expect(bench.motions().filter(({ action }) => action === 'open_door')).toHaveLength(1)
  },
)

test('a tap while the door closes is refused as an interlock, and nothing moves', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 })
  bench.runUntil(() => bench.phase(1) === 'ready')
  bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
  bench.runUntil(() => bench.phase(1) === 'collecting')
  bench.run(500)
  bench.core.operate({ name: 'close_bin', bin: 1 }, () => {})
  bench.run(200)
  expect(bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] }).results).toMatchObject([
    { outcome: 'refused', reason: 'interlock' },
  ])
})

test('an order that the cloud cancelled after its start does not open its bin automatically', () => {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 }, { open_when_ready: true })
  bench.run(100)
  expect(bench.phase(1)).toBe('preparing')
  bench.apply({ kind: 'order.cancel', order_id: uuid(1) })
  expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
  bench.run(30_000)
  expect(bench.phase(1)).toBe('ready')
  expect(bench.motions().filter(({ action }) => action === 'open_door')).toEqual([])
})

test('a person at the hub moves bins without a command report to the cloud', () => {
  const bench = TestHub.ready()
  const outcomes: string[] = []
  bench.core.operate({ name: 'open_bin', bin: 1 }, (result) => outcomes.push(result.outcome))
  bench.run(5000)
  expect(outcomes).toEqual(['executed'])
  expect(bench.entries('command.finished')).toEqual([])
})
