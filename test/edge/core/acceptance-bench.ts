import { expect } from 'vitest'
import { TestHub } from '../../world/hub.ts'

export const open = (bench: TestHub) => bench.core.acceptance.protocol()!
export const stepOf = (bench: TestHub, id: string) => open(bench).steps.find((step) => step.id === id)!
export const last = (bench: TestHub, id: string) => stepOf(bench, id).attempts.at(-1)

/** A hub with stopped orders and a started acceptance. */
export function begun(parts: string[] | null = null): TestHub {
  const bench = TestHub.ready()
  bench.core.hold('orders', true)
  expect(bench.core.acceptance.begin('Ann', parts)).toEqual({ ok: true })
  return bench
}

/** Runs a step, with its manual actions. */
export function take(bench: TestHub, id: string, hands: () => void = () => {}): void {
  expect([id, bench.core.acceptance.beginSteps([id])]).toEqual([id, { ok: true }])
  bench.run(500)
  hands()
  bench.runUntil(() => bench.core.acceptance.state().running === null, 70_000)
}

export function useDoor(bench: TestHub, target: string): void {
  for (const action of ['open_door', 'close_door'] as const) {
    expect([target, bench.room.act({ action, target })]).toMatchObject([target, { ok: true }])
    bench.run(500)
  }
}

/** The manual action of each kind of step. */
export function handsIn(bench: TestHub, id: string): () => void {
  const [kind, name] = id.split('/')
  if (kind === 'door') return () => useDoor(bench, name!)
  const device = `bin-${name}`
  if (kind === 'content')
    return () => {
      bench.room.act({ action: 'put_items', target: device })
      bench.run(500)
      bench.room.act({ action: 'take_items', target: device })
    }
  return () => {}
}

/** Empties the bins that tested rows filled. */
export function emptyBins(bench: TestHub): void {
  for (const { bin_number: bin, occupied } of bench.core.health().bins) {
    if (occupied !== true) continue
    bench.core.operate({ name: 'open_bin', bin }, () => {})
    bench.run(3000)
    bench.takeAll()
    bench.core.operate({ name: 'close_bin', bin }, () => {})
    bench.run(3000)
  }
}

/** Makes the bins empty and puts a unit into the row. */
export function makeRoom(bench: TestHub, id: string): void {
  emptyBins(bench)
  const [cabinet, shelf, row] = id.split('/').slice(1).map(Number)
  if (bench.shelf(`${cabinet}-${shelf}-${row}`) > 0) return
  bench.room.act({ action: 'restock', target: `cabinet-${cabinet}`, shelf: shelf!, row: row!, units: 1 })
}
