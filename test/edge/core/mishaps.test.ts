import { describe, expect, test } from 'vitest'
import { faultTypes, type FaultType } from '../../../simulator/faults/fault-types.ts'
import { seededChance } from '../../simulation/chance.ts'
import { Crash, TestHub } from '../../world/hub.ts'
import { isLongRun } from '../../support/long-tests.ts'
import { uuid } from '../../support/uuid.ts'
import { refOf } from '../../../edge/core/operations/intend.ts'

/** A seed takes five seconds. */
const SEEDS = isLongRun ? 20 : 2
const ORDERS = 4

const targets: Partial<Record<FaultType, readonly string[]>> = {
  jam: ['bin-1', 'cabinet-1', 'cabinet-2'],
  jam_without_motion: ['bin-1', 'cabinet-1', 'cabinet-2'],
  missed_drop: ['cabinet-1', 'cabinet-2'],
  empty_turn: ['cabinet-1'],
  late_drop: ['cabinet-1', 'cabinet-2'],
  double_drop: ['cabinet-1'],
  obstructed_door: ['bin-1', 'bin-2'],
  slow_motion: ['cabinet-1', 'bin-1'],
  sensor_bounce: ['bin-1', 'bin-2'],
  sensor_fault: ['bin-1', 'bin-2'],
  weak_supply: ['vending', 'bins'],
  flash_fault: ['vending', 'bins'],
  silent_port: ['vending', 'bins'],
  corrupted_lines: ['vending', 'bins'],
  lost_replies: ['vending', 'bins'],
  brown_out: ['vending', 'bins'],
  brown_out_in_motion: ['vending', 'bins'],
  memory_loss: ['vending', 'bins'],
  used_board: ['vending', 'bins'],
  door_forced: ['bin-1', 'bin-2', 'main'],
  crossed_cable: ['vending', 'bins'],
}

function takeOverBoards(bench: TestHub): void {
  if (!bench.alive) return
  for (const controller of bench.core.foreignControllers())
    bench.attempt(() => void bench.core.takeOverController(controller))
}

/** Some orders with random faults and crashes; then quiet, and customers who collect their units. */
function play(seed: number): TestHub {
  const chance = seededChance(seed)
  const bench = TestHub.ready(seed)
  let untilCrash = chance.between(20, 400)
  bench.onCheckpoint = (point) => {
    if (--untilCrash > 0) return
    untilCrash = chance.between(20, 400)
    throw new Crash(point)
  }
  const revive = (): void => {
    while (!bench.alive) {
      bench.run(chance.between(100, 4000))
      bench.begin()
    }
  }
  let queued = 0
  for (let minute = 0; minute < 120; minute++) {
    revive()
    if (queued < ORDERS && chance.happens(0.2)) {
      const id = ++queued
      const order = bench.order(id, { [chance.pick([1, 2, 3, 5])]: chance.between(1, 3), 4: 1 })
      // The cloud sends the order until the hub has committed it.
      while (bench.phase(id) === undefined) {
        revive()
        bench.apply({ kind: 'order.queued', order })
      }
    }
    revive()
    for (let count = minute < 60 ? 2 : 0; count > 0; count--) {
      const type = chance.pick(faultTypes)
      const target = targets[type]
      const forMs = chance.between(500, 20_000)
      if (target) bench.fault(type, chance.pick(target), { for_ms: forMs })
    }
    if (chance.happens(0.1)) bench.restart()
    if (chance.happens(0.5)) takeOverBoards(bench)
    const ready = Array.from({ length: queued }, (_, index) => index + 1).filter((id) =>
      ['ready', 'collecting'].includes(bench.phase(id) ?? ''),
    )
    revive()
    if (ready.length > 0)
      bench.command({ name: 'open_delivery', order_id: uuid(chance.pick(ready)), bins: [1, 2] })
    bench.run(chance.between(1000, 20_000))
    bench.takeAll()
    bench.run(chance.between(1000, 20_000))
    bench.takeAll()
  }
  bench.room.faults.clearAll()
  bench.onCheckpoint = () => {}
  if (!bench.alive) bench.begin()
  bench.run(10_000)
  takeOverBoards(bench)
  for (let minute = 0; minute < 80; minute++) {
    for (let id = 1; id <= queued; id++)
      if (['ready', 'collecting'].includes(bench.phase(id) ?? ''))
        bench.command({ name: 'open_delivery', order_id: uuid(id), bins: [1, 2] })
    bench.run(30_000)
    bench.takeAll()
    bench.run(30_000)
    bench.takeAll()
  }
  return bench
}

test.each(Array.from({ length: SEEDS }, (_, index) => index + 1))(
  'under any faults no unit moves twice, every order ends, and the books match the drops (seed %i)',
  (seed) => {
    const bench = play(seed)
    const operations = bench.dispenses().map((act) => act.operation_id)
    expect(new Set(operations).size, 'an operation moved twice').toBe(operations.length)

    const refs = new Map(
      bench.journal
        .prepare<[], { id: string; ref: string }>("SELECT id, ref FROM operations WHERE action = 'dispense'")
        .all()
        .map((row) => [row.id, row.ref]),
    )
    const fallen = bench.dispenses().filter((act) => Number(act.detail['fallen'] ?? 0) > 0)
    const units = fallen.map((act) => refs.get(act.operation_id!))
    expect(new Set(units).size, 'a unit fell twice').toBe(units.length)

    const phases = bench.journal.prepare('SELECT phase FROM orders WHERE ended_at IS NULL').all()
    expect(phases, 'orders that never ended').toEqual([])
    const open = bench.journal.prepare("SELECT id FROM operations WHERE state = 'open'").all()
    expect(open, 'operations that are still open').toEqual([])

    for (const entry of bench.ledger()) {
      if (!('lines' in entry)) continue
      for (const line of entry.lines) {
        const first = refOf({ order_id: entry.order_id, line_id: line.line_id, unit: 0 })
        const mine = units.filter((ref) => ref?.startsWith(first.slice(0, -1)))
        expect(line.dropped, `line ${line.line_id}`).toBeLessThanOrEqual(mine.length + lateFalls(bench))
      }
    }
    for (const act of fallen) expect(act.detail, 'fell past an open door').toMatchObject({ bin_lift: 'down' })
    const unknown = bench.core.unknownOperations()
    expect(bench.stockErrors().length, bench.stockErrors().join('; ')).toBeLessThanOrEqual(unknown.length)
  },
  60_000,
)

/** Units that hung and dropped later. */
const lateFalls = (bench: TestHub): number =>
  bench.room.actuations().filter((act) => act.action === 'drop').length

describe('a door closed by hand while its result could not be reported', () => {
  /** Closes the door while the line is down; the hub later asks for the result of its motion. */
  function closedOffline(bench: TestHub): void {
    bench.runUntil(() => bench.motions().some(({ action }) => action === 'open_door'))
    bench.kill()
    bench.run(10_000)
    bench.room.act({ action: 'close_door', target: 'bin-1' })
    bench.run(2000)
    bench.begin()
    bench.run(10_000)
  }

  test('a bin is free after its door was closed by hand while the line was down', () => {
    const bench = TestHub.ready()
    bench.command({ name: 'open_bin', bin: 1 })
    closedOffline(bench)
    expect(bench.core.health().bins[0]).toMatchObject({ door: 'closed' })
    const told = bench.entries('state').filter(({ state }) => state.of === 'bin' && state.bin === 1)
    expect(told.at(-1)).toMatchObject({ state: { state: 'free' } })
  })

  test('a door closed by hand while the line was down opens for the customer of its units', () => {
    const bench = TestHub.ready()
    bench.queue(1, { 4: 1 })
    bench.runUntil(() => bench.phase(1) === 'ready')
    const deliver = () => bench.command({ name: 'open_delivery', order_id: uuid(1), bins: [1] })
    deliver()
    closedOffline(bench)
    deliver()
    bench.run(10_000)
    expect(bench.room.world.chronicle.state.bins.get('bin-1')?.door).toBe('open')
    bench.takeAll()
    bench.run(60_000)
    expect(bench.phase(1)).toBe('completed')
  })
})
