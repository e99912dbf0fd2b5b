import { expect, test } from 'vitest'
import type { OwnerPayment } from '../../protocol/contract/owner-reports.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { Sqlite } from '../../cloud/platform/store/sqlite-driver.ts'
import { payFromWallet } from '../../cloud/commerce/payments/pay.ts'
import { confirmClaim } from '../cloud/support/confirm-claim.ts'
import { onEachDatabase } from '../world/database.ts'
import { fillWallet, takingsOf } from '../cloud/support/wallets.ts'
import { deliver } from '../cloud/support/webhooks.ts'
import type { Caller } from './walk/call.ts'
import { openWorld, type World } from './walk/world.ts'

interface Page {
  data: OwnerPayment[]
  next_cursor: string | null
  has_more: boolean
}

const ask = (world: World, query: Record<string, string | number> = {}, as: Caller = 'owner', headers = {}) =>
  world.ask(routes['owner.payments.list'], { as, query, headers })
const list = async (world: World, query: Record<string, string | number> = {}, as: Caller = 'owner') =>
  (await ask(world, query, as)).json as Page
const refund = (world: World, id: number, amount?: number) =>
  world.owner('POST', `orders/${id}/refund`, amount === undefined ? {} : { amount })

/** Pays by card, wallet and an integrator; refunds in part and in whole; a dispute is lost and another one won. */
async function sellAll(world: World): Promise<Record<string, number>> {
  const { shop } = world
  const tick = () => shop.clock.advance(1000)
  const sell = async (method?: string) => {
    tick()
    const { id } = await shop.paidOrder({ 1: 1 }, method)
    await finish()
    return id
  }
  /** Frees the bins. */
  const finish = () => shop.context.db.kysely.updateTable('orders').set({ processing_status: 60 }).execute()
  await shop.context.db.kysely.updateTable('products').set({ quantity: 100 }).execute()
  await shop.context.db.kysely.updateTable('facings').set({ quantity: 100 }).execute()
  const [part, whole, refused] = [await sell(), await sell(), await sell('pm_card_refundFail')]
  tick()
  await refund(world, part, 100)
  await refund(world, whole)
  await refund(world, refused)
  const userId = await shop.customer()
  await fillWallet(shop, userId, 5000)
  const cart = await shop.cart(userId, { 1: 1 })
  await payFromWallet(shop.services, { userId, orderId: cart.id })
  await finish()
  await refund(world, cart.id, 71)
  const external = await shop.paidOrder({ 1: 1 }, 'external')
  await confirmClaim(shop.context, { hubId: 1, bin: external.reserved_bin!, key: 'abcdefgh' })
  await finish()
  const disputes = [await sell(), await sell()]
  for (const [index, id] of disputes.entries()) {
    const [payment] = await shop.payments(id)
    await shop.bank.dispute(payment!.processor_ref!)
    await deliver(shop)
    tick()
    if (index === 1) await shop.bank.endDispute(payment!.processor_ref!, 'won')
    await deliver(shop)
  }
  return {
    part,
    whole,
    refused,
    wallet: cart.id,
    external: external.id,
    lost: disputes[0]!,
    won: disputes[1]!,
  }
}

test('each kind of movement is read from an index of its own, so that many refunds do not slow a page with few disputes', async () => {
  let statements: string[] = []
  const sqlite = new Sqlite(':memory:', { verbose: (text) => void statements.push(String(text)) })
  const db = openDatabase({ url: 'sqlite::memory:', sqlite })
  await db.migrate()
  const world = await openWorld(() => Promise.resolve(db))
  statements = []
  await list(world)
  const [read] = statements.filter((text) => text.includes('refunds'))
  const plan = sqlite.prepare(`explain query plan ${read}`).all() as { detail: string }[]
  const indexes = plan.flatMap(({ detail }) => /^SEARCH .* USING INDEX (\w+) /.exec(detail)?.[1] ?? [])
  expect(indexes.toSorted()).toEqual([
    'payments_by_owner',
    'refunds_by_owner',
    'refunds_disputes',
    'refunds_won_back',
  ])
})

onEachDatabase('the payments report', (open) => {
  test('a day and a timestamp bound a report by the time zone of the hub', async () => {
    const world = await openWorld(open)
    const zone = { timezone: 'Asia/Tokyo' }
    await world.shop.context.db.kysely.updateTable('hubs').set(zone).where('id', '=', 1).execute()
    // In Tokyo the day begins nine hours before the same day of UTC: `from` is before `to`.
    const { clock } = world.shop
    clock.shiftWall(15 * 3_600_000 - (clock.now() % 86_400_000))
    await world.shop.hear()
    const midnight = clock.now()
    const day = new Date(midnight + 9 * 3_600_000).toISOString().slice(0, 10)
    const { id } = await world.shop.paidOrder({ 1: 1 })
    const range = { from: day, to: new Date(midnight + 60_000).toISOString() }
    expect((await list(world, range)).data).toMatchObject([{ order_id: id }])
    const orders = await world.ask(routes['owner.orders.list'], {
      as: 'owner',
      query: { hub_id: 1, ...range },
    })
    expect(orders.json).toMatchObject({ data: [{ id }] })
    expect((await world.ask(routes['owner.audit.read'], { as: 'owner', query: range })).status).toBe(200)
    const inverted = { from: day, to: new Date(midnight - 60_000).toISOString() }
    for (const route of ['owner.payments.list', 'owner.audit.read', 'owner.orders.list'] as const) {
      const query = { ...inverted, ...(route === 'owner.orders.list' && { hub_id: 1 }) }
      expect((await world.ask(routes[route], { as: 'owner', query })).status, route).toBe(422)
    }
  })

  test('payments, refunds and disputes of card, wallet and integrators are listed with their tax, newest first', async () => {
    const world = await openWorld(open)
    const orders = await sellAll(world)
    const { data } = await list(world, { limit: 100 })
    const shown = (name: string) =>
      data
        .filter(({ order_id }) => order_id === orders[name])
        .map(({ type, status, processor, amount, tax }) => [type, status, processor, amount, tax])
    const paid = ['payment', 'completed', 'card', 271, 21]
    expect(shown('part')).toEqual([['refund', 'succeeded', 'card', -100, -7], paid])
    expect(shown('whole')).toEqual([['refund', 'succeeded', 'card', -271, -21], paid])
    expect(shown('refused')).toEqual([paid])
    expect(shown('wallet')).toEqual([
      ['refund', 'succeeded', 'wallet', -71, -5],
      ['payment', 'completed', 'wallet', 271, 21],
    ])
    expect(shown('external')).toEqual([['payment', 'completed', 'external', 271, 21]])
    expect(shown('lost')).toEqual([['dispute', 'lost', 'card', -271, -21], paid])
    expect(shown('won')).toEqual([
      ['dispute', 'won', 'card', 271, 21],
      ['dispute', 'lost', 'card', -271, -21],
      paid,
    ])
    const times = data.map(({ created_at }) => created_at)
    expect(times).toEqual(times.toSorted().toReversed())
    expect(data.find(({ processor }) => processor === 'card')!.reference).toMatch(/^\w+_/)
    expect(data.find(({ processor }) => processor === 'external')!.reference).toBeNull()
    expect((await list(world, { order_id: orders['part']! })).data).toHaveLength(2)
    expect((await list(world, { order_id: 9999 })).data).toEqual([])
  })

  test('the CSV of all payments adds up to the books to the cent, and pages contain each row once', async () => {
    const world = await openWorld(open)
    await sellAll(world)
    const q = world.shop.context.db.kysely
    const { text, lines } = await csvOf(world)
    const amounts = lines.map((line) => Number(line.split(',')[8]))
    expect(amounts.reduce((sum, amount) => sum + amount, 0)).toBe(await takingsOf(q))
    expect(text.slice(0, text.indexOf('\r\n'))).toBe(
      'id,type,order_id,hub_id,created_at,completed_at,status,processor,amount,tax,currency,reference',
    )
    const ids: string[] = []
    let cursor: string | null = null
    do {
      const page: Page = await list(world, { limit: 2, ...(cursor !== null && { cursor }) })
      ids.push(...page.data.map(({ id }) => id))
      cursor = page.next_cursor
      expect(page.has_more).toBe(cursor !== null)
    } while (cursor !== null)
    expect(ids).toEqual(lines.map((line) => line.split(',')[0]))
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('days are those of each hub’s calendar, and timestamps bound to the millisecond', async () => {
    const world = await openWorld(open)
    const { clock, context } = world.shop
    await context.db.kysely
      .updateTable('hubs')
      .set({ timezone: 'America/Chicago' })
      .where('id', '=', 1)
      .execute()
    clock.advance(Date.parse('2025-11-03T05:59:00Z') - clock.now())
    await world.shop.hear()
    await world.shop.paidOrder({ 1: 1 })
    const [{ created_at }] = (await list(world)).data as [OwnerPayment]
    const count = async (query: Record<string, string>) => (await list(world, query)).data.length
    expect(await count({ from: '2025-11-02', to: '2025-11-02' })).toBe(1)
    expect(await count({ from: '2025-11-03' })).toBe(0)
    expect(await count({ from: created_at })).toBe(1)
    expect(await count({ to: created_at })).toBe(0)
    expect(await ask(world, { from: '2025-11-03', to: '2025-11-02' })).toMatchObject({
      status: 422,
      json: { detail: [{ loc: ['query', 'from'], type: 'value_error' }] },
    })
    expect((await ask(world, { from: 'yesterday' })).status).toBe(422)
  })

  test('another owner sees no payment, and a moved hub leaves its payments with the former owner', async () => {
    const world = await openWorld(open)
    await world.shop.paidOrder({ 1: 1 })
    expect((await list(world, {}, 'other-owner')).data).toEqual([])
    const q = world.shop.context.db.kysely
    const until = world.shop.clock.now() + 1
    await q.insertInto('former_owners').values({ hub_id: 1, owner_id: 1, since: 0, until }).execute()
    await q.updateTable('hubs').set({ owner_id: 2, owned_since: until }).where('id', '=', 1).execute()
    expect((await list(world, { hub_id: 1 })).data).toHaveLength(1)
    expect((await list(world)).data).toHaveLength(1)
    expect((await list(world, { hub_id: 1 }, 'other-owner')).data).toEqual([])
  })
})

async function csvOf(world: World): Promise<{ text: string; lines: string[] }> {
  const { json } = await ask(world, {}, 'owner', { Accept: 'text/csv' })
  const text = json as string
  return { text, lines: text.split('\r\n').slice(1, -1) }
}
