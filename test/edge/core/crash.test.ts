import { expect, test } from 'vitest'
import { uuid } from '../../support/uuid.ts'
import { Crash, TestHub } from '../../world/hub.ts'

/** Plays the customer and the cloud until the order has ended, over any number of lives. */
function playOut(bench: TestHub, restartMs: number): void {
  for (let second = 0; second < 900 && bench.phase(1) !== 'completed'; second++) {
    bench.run(1000)
    if (!bench.alive) {
      bench.run(restartMs)
      bench.begin()
    }
    const phase = bench.phase(1)
    if (phase === undefined) bench.queue(1, { 1: 2, 4: 1 })
    if (phase === 'ready' && second % 3 === 0)
      bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
    bench.takeAll()
  }
  bench.run(15_000)
}

/** The checkpoints of an order without faults. */
function pointsOfOneOrder(): string[] {
  const bench = TestHub.ready()
  const points: string[] = []
  bench.onCheckpoint = (point) => void points.push(point)
  bench.queue(1, { 1: 2, 4: 1 })
  playOut(bench, 0)
  expect(bench.phase(1)).toBe('completed')
  return points
}

test('after a crash at any point of an order nothing moves twice, and the order ends COMPLETED', () => {
  const points = pointsOfOneOrder()
  expect(points.length).toBeGreaterThan(50)
  for (const [index, point] of points.entries()) {
    const bench = TestHub.ready()
    let passed = 0
    bench.onCheckpoint = () => {
      if (passed++ === index) throw new Crash(point)
    }
    bench.queue(1, { 1: 2, 4: 1 })
    playOut(bench, 300)
    const where = `crash at ${point} (passing ${index})`
    expect(bench.phase(1), where).toBe('completed')
    const operations = bench.dispenses().map((act) => act.operation_id)
    expect(new Set(operations).size, where).toBe(operations.length)
    const fallen = bench.dispenses().reduce((sum, act) => sum + Number(act.detail['fallen'] ?? 0), 0)
    expect(fallen, where).toBe(3)
    const ready = bench.entries('order.ready')
    expect(ready, where).toHaveLength(1)
    expect(
      ready[0]?.lines.map((line) => line.dropped),
      where,
    ).toEqual([2, 1])
    expect(bench.entries('stock.dropped'), where).toHaveLength(3)
    expect(bench.stockErrors(), where).toEqual([])
    expect(bench.core.unknownOperations(), where).toEqual([])
  }
}, 120_000)
