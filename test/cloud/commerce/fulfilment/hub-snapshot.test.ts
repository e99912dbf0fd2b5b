import { beforeEach, expect, test } from 'vitest'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { hubSnapshot } from '../../../../cloud/commerce/fulfilment/hub-snapshot.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { seedHub } from '../../../world/seeds.ts'
import { testContext } from '../../../world/context.ts'

const operation = (number: number): string => `01900000-0000-7000-8000-${String(number).padStart(12, '0')}`
const numbers = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

onEachDatabase('the snapshot of what a hub must know', (open) => {
  let context: CloudContext
  beforeEach(async () => {
    const db = await open()
    context = testContext(db, virtualRuntime())
    await seedHub(db, 1)
    await seedHub(db, 2)
  })

  const drop = (number: number, hubId = 1) =>
    context.db.kysely
      .insertInto('stock_ledger')
      .values({
        hub_id: hubId,
        product_id: 1,
        cabinet: 1,
        shelf: 1,
        row: 1,
        kind: 'dropped',
        delta: -1,
        cause_id: operation(number),
        order_id: null,
        item_id: null,
        delivered: null,
        at: 0,
      })
      .execute()
  /** `count` drops of a cabinet, one after the other. */
  const drops = async (first: number, count: number, cabinet: number): Promise<void> => {
    const row = {
      hub_id: 1,
      product_id: 1,
      cabinet,
      shelf: 1,
      row: 1,
      kind: 'dropped',
      delta: -1,
      at: 0,
    } as const
    const nobodys = { order_id: null, item_id: null, delivered: null }
    for (let from = first; from < first + count; from += 100)
      await context.db.kysely
        .insertInto('stock_ledger')
        .values(
          numbers(from, from + 99).map((number) => ({ ...row, ...nobodys, cause_id: operation(number) })),
        )
        .execute()
  }
  const unknown = (
    number: number,
    settledBy: 'count' | 'person' | 'sensor' | null,
    hubId = 1,
    happened: 0 | 1 = 0,
  ) =>
    context.db.kysely
      .insertInto('unknown_operations')
      .values({
        hub_id: hubId,
        operation_id: operation(number),
        device: 'cabinet-1',
        action: 'dispense',
        reason: 'no_drop',
        order_id: null,
        item_id: null,
        product_id: 1,
        started_at: 0,
        at: 0,
        settled_at: settledBy === null ? null : 1,
        settled_by: settledBy,
        happened: settledBy === null ? null : happened,
      })
      .execute()
  const snapshotOf = (hubId: number) => context.db.transact((tx) => hubSnapshot(tx, context, hubId))
  const known = async (hubId = 1): Promise<string[]> => (await snapshotOf(hubId)).known_operations

  test('the snapshot contains the hub’s desired state', async () => {
    expect(await snapshotOf(1)).toMatchObject({
      kind: 'snapshot',
      config: { accepting_orders: true, disabled_bins: [3], disabled_fridges: [] },
      orders: [],
    })
  })

  test('the snapshot lists the operations in its stock: drops, and resolved unknown operations', async () => {
    await drop(3)
    await unknown(1, 'count')
    await unknown(2, null)
    await unknown(4, 'sensor')
    await drop(4)
    await drop(5, 2)
    await unknown(6, 'person', 2)
    expect(await known()).toEqual([1, 3, 4].map(operation))
    expect(await known(2)).toEqual([5, 6].map(operation))
  })

  test('the snapshot leaves out an operation resolved as dropped if the hub may have lost the drop before its report', async () => {
    await unknown(1, 'sensor', 1, 1)
    await unknown(2, 'person', 1, 1)
    await drop(2)
    await unknown(3, 'count', 1, 1)
    expect(await known()).toEqual([2, 3].map(operation))
  })

  test('the snapshot lists the newest operations of each cabinet, more than a controller remembers, also for a slow seller', async () => {
    await drops(1, 200, 2)
    await drops(1001, 1200, 1)
    expect(await known()).toEqual([...numbers(1, 200), ...numbers(1801, 2200)].map(operation))
    await unknown(1500, 'count')
    expect(await known()).toContain(operation(1500))
  })
})
