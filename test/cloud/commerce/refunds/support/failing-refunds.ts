import { expect } from 'vitest'
import {
  ProcessorUnavailable,
  type CardProcessor,
} from '../../../../../cloud/commerce/processors/processor.ts'
import { readOwed } from '../../../../../cloud/commerce/refunds/owed.ts'
import { refundItem } from '../../../../../cloud/commerce/refunds/refund-requests.ts'
import { settleRefunds } from '../../../../../cloud/commerce/refunds/settle-refunds.ts'
import { collectCloud } from '../../../../invariants/collect-cloud.ts'
import { changesArePublishedOnce } from '../../../../invariants/events.ts'
import type { Evidence } from '../../../../invariants/evidence.ts'
import { moneyAddsUp } from '../../../../invariants/money.ts'
import { analyticsAddUp } from '../../../../invariants/sales.ts'
import type { OpenDatabase } from '../../../../world/database.ts'
import { openShop, type Shop } from '../../../../world/shop.ts'

export const HOUR = 3_600_000
export const who = { mayTouch: () => Promise.resolve(true), actor: 'owner' }

/** The behaviour of the processor. `late`: it executes a refund, and its answer is lost. */
export type Weather = 'good' | 'down' | 'late' | 'refuses'
export interface World {
  shop: Shop
  orderId: number
  paid: number
  weather: { now: Weather }
}

export function unreliable(real: CardProcessor, weather: { now: Weather }): CardProcessor {
  return {
    ...real,
    async createRefund(request) {
      if (weather.now === 'down') throw new ProcessorUnavailable('down')
      if (weather.now === 'refuses')
        return { ref: `re_no_${request.idempotencyKey}`, status: 'failed', failureReason: 'no' }
      const made = await real.createRefund(request)
      if (weather.now === 'late') throw new ProcessorUnavailable('late')
      return made
    },
  }
}

/** An order of 2 units of product 1 and 1 unit of product 2, which the hub prepares. */
export async function begun(open: OpenDatabase, now: Weather): Promise<World> {
  const weather = { now }
  const shop = await openShop(await open(), { wrapProcessor: (real) => unreliable(real, weather) })
  const { id: orderId, total } = await shop.paidOrder({ 1: 2, 2: 1 })
  await shop.report({ kind: 'order.preparing', order_id: orderId, bins: [1] })
  return { shop, orderId, paid: total!, weather }
}

/** The same, when the hub has dispensed one unit of product 1: two refunds are owed. */
export async function short(open: OpenDatabase, now: Weather): Promise<World> {
  const world = await begun(open, now)
  await ready(world)
  await world.shop.work.drain()
  return world
}

export async function ready({ shop, orderId }: World): Promise<void> {
  const items = await shop.items(orderId)
  const lines = items.map(({ id }, index) => ({
    line_id: id,
    dropped: index === 0 ? 1 : 0,
    doubtful: 0,
    bins: [1],
  }))
  await shop.report({ kind: 'order.ready', order_id: orderId, bins: [1], lines })
}

export const unit = ({ shop, orderId }: World, productId: number) =>
  refundItem(shop.services, { orderId, ...who, productId, quantity: 1 })

/** Advances the clock in steps of `size` hours, with the due work of each. */
export async function hours({ shop }: World, count: number, size = 1): Promise<void> {
  for (let step = 0; step < count; step += 1) {
    shop.clock.advance(size * HOUR)
    await shop.work.drain()
  }
}

/** The refunds that a person sees as owed. */
export interface Seen {
  ids: number[]
  amount: number
}

export async function seen({ shop, orderId }: World): Promise<Seen> {
  const { owed } = await readOwed(shop.context.db.kysely, await shop.order(orderId))
  return { ids: owed.map(({ id }) => id), amount: owed.reduce((sum, { amount }) => sum + amount, 0) }
}

export async function only(world: World, ...ids: number[]): Promise<Seen> {
  const { shop, orderId } = world
  const { owed } = await readOwed(shop.context.db.kysely, await shop.order(orderId))
  const chosen = owed.filter(({ id }) => ids.includes(id))
  return { ids, amount: chosen.reduce((sum, { amount }) => sum + amount, 0) }
}

export const settle = ({ shop, orderId }: World, { ids, amount }: Seen) =>
  shop.context.db.transact((tx) =>
    settleRefunds(tx, shop.services, orderId, { ids, amount, reason: 'cash', actor: 'owner' }),
  )

export const alarms = ({ shop }: World) =>
  shop.context.db.kysely
    .selectFrom('alarms')
    .selectAll()
    .where('kind', '=', 'refund_failed')
    .orderBy('seq')
    .execute()

/** The details of the open alarm. */
export async function alarm(world: World): Promise<unknown> {
  const open = (await alarms(world)).find(({ cleared_at }) => cleared_at === null)
  return open && (JSON.parse(open.details) as unknown)
}

/** Cents that the processor and people have returned. */
export async function returned({ shop, orderId }: World): Promise<{ bank: number; outside: number }> {
  const [intent] = await shop.bank.intents()
  const settled = (await shop.refunds(orderId)).filter(({ settles }) => settles !== null)
  return { bank: intent!.refunded, outside: settled.reduce((sum, { amount }) => sum + amount, 0) }
}

async function booksAddUp(world: World): Promise<void> {
  await world.shop.work.drain()
  const evidence = { cloud: await collectCloud(world.shop.context.db.kysely, 1) } as Evidence
  expect([
    ...moneyAddsUp(evidence),
    ...changesArePublishedOnce(evidence),
    ...analyticsAddUp(evidence),
  ]).toEqual([])
}

/** The processor works again and a week passes: nothing more is refunded, and no alarm is open. */
export async function restEndsAt(world: World, expected: { bank: number; outside: number }): Promise<void> {
  world.weather.now = 'good'
  await hours(world, 14, 12)
  expect(await returned(world)).toEqual(expected)
  expect(await alarm(world)).toBeUndefined()
  await booksAddUp(world)
}

/** The hub never finishes the order: the service refunds the rest of its money. */
export const timesOut = (world: World, outside: number): Promise<void> =>
  restEndsAt(world, { bank: world.paid - outside, outside })
