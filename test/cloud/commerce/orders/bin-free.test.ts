import { describe, expect, test } from 'vitest'
import { OrderStatus as S, type OrderStatus } from '../../../../protocol/model/order-status.ts'
import {
  binRoom,
  isBinFree,
  takenBins,
  type BinAtHub,
  type OrderAtHub,
} from '../../../../cloud/commerce/orders/bin-room.ts'
import { checkoutObstacles } from '../../../../cloud/commerce/orders/checkout.ts'
import { hubIntake, notSellingReason } from '../../../../cloud/commerce/orders/intake.ts'
import { cartLines } from '../../../../cloud/commerce/orders/price-cart.ts'
import { pay, payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { applyStateEntry } from '../../../../cloud/commerce/fulfilment/apply-hub-entry.ts'
import { setDesired, type Configuration } from '../../../../cloud/operations/controls/configuration.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { binOfHealth } from '../../../world/seeds.ts'
import { simultaneously } from '../../../world/simultaneous.ts'
import { droppedLines, openShop, statuses, type Shop } from '../../../world/shop.ts'
import { healthy } from '../../../world/health.ts'

const bin = (number: number, changes: Partial<BinAtHub> = {}): BinAtHub => ({
  ...binOfHealth(healthy.bins[0]!),
  bin: number,
  capacity: 3,
  ...changes,
})
const order = (
  id: number,
  processing_status: OrderStatus,
  changes: Partial<OrderAtHub> = {},
): OrderAtHub => ({
  id,
  uuid: String(id),
  processing_status,
  reserved_bin: null,
  payer_network: null,
  is_asked: 0,
  bins: [],
  units: 1,
  ...changes,
})

describe('free bins', () => {
  test.each<[string, BinAtHub[], OrderAtHub[], number]>([
    ['an empty bin is free', [bin(1), bin(2)], [], 2],
    [
      'a bin out of order is not free',
      [bin(1, { state: 'faulty', fault: 'open_door:jam' }), bin(2, { state: 'offline' })],
      [],
      0,
    ],
    ['a disabled bin is not free', [bin(3)], [], 0],
    [
      'a bin that failed for the order in it is not free',
      [bin(1, { order_id: '7', state: 'held', fault: 'lower_lift:jam' })],
      [order(7, S.PREPARING)],
      0,
    ],
    ['a bin with left units is not free', [bin(1, { state: 'left_behind' })], [], 0],
    [
      'a bin with units left by an ended order is not free',
      [bin(1, { state: 'left_behind', order_id: '7' })],
      [order(7, S.COMPLETED)],
      0,
    ],
    ['a bin with an open door is not free', [bin(1, { state: 'open' })], [], 0],
    ['a bin with a waiting order is not free', [bin(1), bin(2)], [order(7, S.QUEUED)], 1],
    ['a bin is not free while an order waits for its payment', [bin(1)], [order(7, S.PENDING_PAYMENT)], 1],
    [
      'a bin is not free while the processor is asked for an order’s payment',
      [bin(1)],
      [order(7, S.PENDING_PAYMENT, { is_asked: 1 })],
      0,
    ],
    [
      'several bins are not free if an order needs them',
      [bin(1), bin(2), bin(4)],
      [order(7, S.QUEUED, { units: 4 })],
      1,
    ],
    [
      'a bin that an integrator has claimed is not free, paid or not',
      [bin(1), bin(2), bin(4)],
      [order(7, S.PENDING_PAYMENT, { reserved_bin: 1 }), order(8, S.QUEUED, { reserved_bin: 2 })],
      1,
    ],
    [
      'a bin with a ready order is not free, also before the hub’s report of the bin',
      [bin(1)],
      [order(7, S.READY, { bins: [1] })],
      0,
    ],
    [
      'a bin that the hub fills, with a late ledger, is free after its order, which needs no other',
      [bin(1, { order_id: '7', state: 'held' })],
      [order(7, S.QUEUED)],
      1,
    ],
    ['a bin with an unknown order is not free', [bin(1, { order_id: '7', state: 'held' })], [], 0],
  ])('%s', (_, bins, orders, free) => {
    expect(binRoom(bins, [3], orders).free).toBe(free)
  })

  test.each(statuses.map((status) => [status]))(
    'a bin with an order in status %i comes free or not',
    (status) => {
      const comesFree: number[] = [S.QUEUED, S.PREPARING, S.COLLECTING, S.COMPLETED]
      const room = binRoom([bin(1, { order_id: '7', state: 'held' })], [], [order(7, status)])
      expect(room.free).toBe(comesFree.includes(status) ? 1 : 0)
    },
  )

  test('a bin takes a limited number of units, so a large order needs several, and an integrator’s order an empty one', () => {
    const room = binRoom(
      [bin(1), bin(2), bin(4, { order_id: '7', state: 'held' })],
      [],
      [order(7, S.PREPARING)],
    )
    expect([3, 4, 9, 99].map((units) => isBinFree(room, units, false))).toEqual([true, true, true, false])
    const less = binRoom([bin(1), bin(2, { order_id: '7', state: 'held' })], [], [order(7, S.READY)])
    expect([1, 3, 4].map((units) => isBinFree(less, units, false))).toEqual([true, true, false])
    const none = binRoom([bin(4, { order_id: '7', state: 'held' })], [], [order(7, S.PREPARING)])
    expect([isBinFree(none, 1, false), isBinFree(none, 1, true)]).toEqual([true, false])
  })
})

const products = [{ price: 100, quantity: 100 }]
const held = async (shop: Shop, orderIds: readonly number[]) => {
  const uuids = await Promise.all(orderIds.map(async (id) => (await shop.order(id)).uuid))
  return {
    bins: healthy.bins.map((one, index) =>
      index < uuids.length ? { ...one, order_id: uuids[index]!, occupied: true } : one,
    ),
  }
}

/** The answer of `checkout-available` about a cart. */
async function reasons({ context }: Shop, orderId: number): Promise<string[]> {
  const q = context.db.kysely
  const intake = await hubIntake(q, context, 1)
  const obstacles = await checkoutObstacles(q, await cartLines(q, orderId), intake, { claim: false })
  return obstacles.map(({ code }) => code)
}

const notSelling = ({ context }: Shop) => notSellingReason(context.db.kysely, context, 1)

/** A new customer tries to pay; returns the result and the order. */
async function tryToPay(shop: Shop, method = 'pm_card_visa') {
  const userId = await shop.customer()
  const { id } = await shop.cart(userId, { 1: 1 })
  const said = await reasons(shop, id)
  const refusal = await pay(shop.services, { userId, orderId: id, method }).then(
    () => null,
    (error: unknown) => (error as { code: string }).code,
  )
  return { id, userId, said, refusal }
}

/** The hub fills an order into a bin; its customer collects it if `comes`. */
async function serve(shop: Shop, orderId: number, binNumber: number, comes: boolean): Promise<void> {
  const lines = droppedLines(await shop.items(orderId), { bin: binNumber })
  const about = { order_id: orderId, bins: [binNumber] }
  await shop.report({ kind: 'order.preparing', ...about })
  await shop.report({ kind: 'order.ready', ...about, lines })
  if (comes) await shop.report({ kind: 'order.completed', order_id: orderId })
}

describe('a hub with no free bin', () => {
  const taken = (bins: BinAtHub[], disabled: number[], orders: OrderAtHub[]) =>
    takenBins(bins, disabled, orders)?.map(({ reason }) => reason) ?? null
  const held = { order_id: '7', state: 'held' } as const

  test.each<{
    name: string
    bins: BinAtHub[]
    disabled?: number[]
    orders?: OrderAtHub[]
    reasons: string[] | null
  }>([
    { name: 'no bin is known', bins: [], reasons: null },
    { name: 'one bin is free', bins: [bin(1), bin(2, { state: 'left_behind' })], reasons: null },
    {
      name: 'an order in progress will leave its bin',
      bins: [bin(1, held)],
      orders: [order(7, S.PREPARING)],
      reasons: null,
    },
    {
      name: 'a customer is at the bin',
      bins: [bin(1, { ...held, state: 'open' })],
      orders: [order(7, S.COLLECTING)],
      reasons: null,
    },
    {
      name: 'a claim ends without a person',
      bins: [bin(1)],
      orders: [order(7, S.PENDING_PAYMENT)],
      reasons: null,
    },
    {
      name: 'every bin waits for a person',
      bins: [
        bin(1, held),
        bin(2, { state: 'left_behind' }),
        bin(3),
        bin(4, { fault: 'jam' }),
        bin(5, { state: 'offline' }),
        bin(6, { state: 'open' }),
      ],
      disabled: [3],
      orders: [order(7, S.READY)],
      reasons: ['ready', 'left_behind', 'disabled', 'fault', 'offline', 'open'],
    },
    {
      name: 'an ended order left its units',
      bins: [bin(1, held)],
      orders: [order(7, S.FAILED)],
      reasons: ['left_behind'],
    },
    {
      name: 'a bin holds an order that the cloud does not know',
      bins: [bin(1, held)],
      reasons: ['left_behind'],
    },
  ])(
    'the reasons are right if $name: $reasons',
    ({ bins, disabled = [], orders = [], reasons: expected }) => {
      expect(taken(bins, disabled, orders)).toEqual(expected)
    },
  )
})

onEachDatabase('a hub with occupied bins', (open) => {
  test('a hub with uncollected orders in all bins sells nothing, and explains it before a payment', async () => {
    const shop = await openShop(await open(), { products })
    const ids: number[] = []
    for (const binNumber of [1, 2, 3, 4]) {
      const { id, said, refusal } = await tryToPay(shop)
      expect([said, refusal]).toEqual([[], null])
      await serve(shop, id, binNumber, false)
      ids.push(id)
    }
    await shop.hear(await held(shop, ids))
    const late = await tryToPay(shop)
    expect([late.said, late.refusal]).toEqual([['no_bin_available'], 'no_bin_available'])
    expect((await shop.order(late.id)).processing_status).toBe(S.NEW)
    expect(await shop.product(1)).toEqual({ quantity: 100, reserved: 0 })
    await shop.report({ kind: 'order.collecting', order_id: ids[0]! })
    expect(await tryToPay(shop)).toMatchObject({ said: [], refusal: null })
    expect(await tryToPay(shop)).toMatchObject({ said: ['no_bin_available'], refusal: 'no_bin_available' })
  })

  test('the alarm no_bin_available lists orders and bins, stays up to date, and ends with the first free bin', async () => {
    const shop = await openShop(await open(), { products })
    const open4 = () =>
      shop.context.db.kysely
        .selectFrom('alarms')
        .select(['severity', 'message', 'details', 'quiet_since'])
        .where('kind', '=', 'no_bin_available')
        .execute()
    const ids: number[] = []
    for (const binNumber of [1, 2, 3, 4]) {
      expect(await open4()).toEqual([])
      const { id } = await tryToPay(shop)
      await serve(shop, id, binNumber, false)
      ids.push(id)
    }
    const [alarm] = await open4()
    expect(alarm).toMatchObject({ severity: 'critical', quiet_since: null })
    expect(alarm!.message).toBe(
      `The hub has no free bin and sells nothing (${ids
        .map((id, index) => `bin ${index + 1}: order ${id} is not collected`)
        .join('; ')}).`,
    )
    expect(JSON.parse(alarm!.details)).toEqual({
      bins: ids.map((id, index) => ({ bin_number: index + 1, reason: 'ready', order_id: id })),
      order_ids: ids,
    })
    expect(await notSelling(shop)).toBe('no_bin_available')
    await shop.report({ kind: 'order.unclaimed', order_id: ids[0]! })
    const { uuid } = await shop.order(ids[0]!)
    const bin1 = { of: 'bin', bin: 1, capacity: 10, order_id: uuid, fault: null, since: 0 } as const
    await shop.report({ kind: 'state', state: { ...bin1, state: 'left_behind' } })
    const [later] = await open4()
    expect(JSON.parse(later!.details)).toMatchObject({
      bins: [{ reason: 'left_behind', order_id: ids[0] }, {}, {}, {}],
    })
    expect(later!.quiet_since).toBeNull()
    await shop.report({ kind: 'state', state: { ...bin1, order_id: null, state: 'free' } })
    expect((await open4())[0]!.quiet_since).not.toBeNull()
    expect(await notSelling(shop)).toBeNull()
    // Other causes of a bin's alarm are excluded.
    const q = shop.context.db.kysely
    await q.updateTable('products').set({ quantity: 0, reserved: 0 }).execute()
    expect(await notSelling(shop)).toBe('out_of_stock')
    await q.updateTable('hubs').set({ accepting_orders: 0 }).execute()
    expect(await notSelling(shop)).toBe('orders_stopped')
  })

  test.for([
    { before: 'left_behind', reported: 'free', isOpen: false },
    { before: 'free', reported: 'left_behind', isOpen: true },
  ] as const)(
    'the alarm no_bin_available is right if an owner disables a bin while the hub reports the other one as $reported',
    async ({ before, reported, isOpen }) => {
      const shop = await openShop(await open(), { products, bins: 2 })
      const { context } = shop
      const bin2 = (state: typeof before) =>
        ({
          kind: 'state',
          at: 0,
          state: { of: 'bin', bin: 2, capacity: 10, order_id: null, fault: null, since: 0, state },
        }) as const
      await shop.report(bin2(before))
      const disable = { hubId: 1, change: (now: Configuration) => ({ ...now, disabledBins: [1] }) }
      await simultaneously(
        context.db,
        (tx) => setDesired(tx, context, disable),
        (tx) => applyStateEntry(tx, context, 1, bin2(reported)),
      )
      const alarms = await context.db.kysely
        .selectFrom('alarms')
        .select('quiet_since')
        .where('kind', '=', 'no_bin_available')
        .execute()
      expect(alarms.some(({ quiet_since }) => quiet_since === null)).toBe(isOpen)
    },
  )

  test('a hub with units of failed orders in all bins sells nothing', async () => {
    const shop = await openShop(await open(), { products })
    const ids: number[] = []
    for (const binNumber of [1, 2, 3, 4]) {
      const { id } = await tryToPay(shop)
      ids.push(id)
      const failed = { reason: 'jam', bins: [binNumber], lines: [] }
      await shop.report({ kind: 'order.failed', order_id: id, ...failed })
    }
    await shop.hear(await held(shop, ids))
    expect(await tryToPay(shop)).toMatchObject({ said: ['no_bin_available'], refusal: 'no_bin_available' })
    await shop.hear()
    expect(await tryToPay(shop)).toMatchObject({ said: [], refusal: null })
  })

  test('a hub sells its last bin once to simultaneous payers by card, wallet or integrator', async () => {
    const shop = await openShop(await open(), { products })
    const ready: number[] = []
    for (const binNumber of [1, 2, 3]) {
      const { id } = await tryToPay(shop)
      await serve(shop, id, binNumber, false)
      ready.push(id)
    }
    await shop.hear(await held(shop, ready))
    const carts: { userId: number; orderId: number }[] = []
    for (let count = 0; count < 6; count += 1) {
      const userId = await shop.customer()
      await shop.context.db.kysely
        .insertInto('ledger_accounts')
        .values({ user_id: userId, account: 'wallet', balance: 5000, debt: 0, entries: 1 })
        .execute()
      carts.push({ userId, orderId: (await shop.cart(userId, { 1: 1 })).id })
    }
    const ways = [
      (cart: { userId: number; orderId: number }) => pay(shop.services, { ...cart, method: 'pm_card_visa' }),
      (cart: { userId: number; orderId: number }) => payFromWallet(shop.services, cart),
      (cart: { userId: number; orderId: number }) => pay(shop.services, { ...cart, method: 'external' }),
    ]
    const ends = await Promise.allSettled(carts.map((cart, index) => ways[index % 3]!(cart)))
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const refused = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as { code: string }] : []))
    expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['no_bin_available']))
    expect(await shop.product(1)).toMatchObject({ reserved: 1 })
  })

  test('a bin is free again when the payment that held it has failed', async () => {
    const shop = await openShop(await open(), { products })
    for (let count = 0; count < 4; count += 1)
      expect((await tryToPay(shop, 'pm_card_chargeDeclined')).refusal).toBe('card_declined')
    for (let count = 0; count < 4; count += 1) expect((await tryToPay(shop)).refusal).toBeNull()
    expect((await tryToPay(shop)).refusal).toBe('no_bin_available')
  })
})
