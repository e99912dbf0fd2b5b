import { beforeEach, expect, test } from 'vitest'
import { listAudit } from '../../../../cloud/platform/audit/audit.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable, type CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { moveHub, retireHub } from '../../../../cloud/operations/ownership/hand-over.ts'
import type { OrderEvidence } from '../../../../protocol/contract/owner-orders.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService, type Service } from '../../../world/service.ts'
import type { Shop } from '../../../world/shop.ts'
import { openSandboxBank } from '../../support/bank.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import { deliver, sendEvent } from '../../support/webhooks.ts'

const DAY = 86_400_000

/** A processor that can refuse refunds, or be away. */
const weather = { refuses: false, isAway: false }
beforeEach(() => void Object.assign(weather, { refuses: false, isAway: false }))
function unreliable(real: CardProcessor): CardProcessor {
  const reach = <T>(work: () => Promise<T>): Promise<T> =>
    weather.isAway ? Promise.reject(new ProcessorUnavailable('away')) : work()
  return {
    ...real,
    cancelIntent: (ref) => reach(() => real.cancelIntent(ref)),
    readIntent: (ref) => reach(() => real.readIntent(ref)),
    createRefund: (asked) =>
      weather.refuses
        ? Promise.resolve({ ref: null, status: 'failed', failureReason: 'no' })
        : real.createRefund(asked),
  }
}

/** A cart with a payment (271 cents) that waits for its customer. */
async function checkedOut(shop: Shop): Promise<{ id: number; ref: string }> {
  const userId = await shop.customer()
  const { id } = await shop.cart(userId, { 1: 1 })
  const method = 'pm_card_authenticationRequired'
  const { payment_id: ref } = await pay(shop.services, { userId, orderId: id, method })
  return { id, ref }
}

/** A cart again: its payment has failed. */
async function declined(shop: Shop): Promise<{ id: number; ref: string }> {
  const order = await checkedOut(shop)
  const object = { id: order.ref }
  await sendEvent(shop, { id: 'evt_failed', type: 'payment_intent.payment_failed', object })
  return order
}

/** The same, and the processor took the money nevertheless. */
async function late(shop: Shop): Promise<{ id: number; ref: string }> {
  const order = await declined(shop)
  await shop.bank.take(order.ref)
  return order
}

const retire = ({ context }: Shop, force = false) =>
  context.db.transact((tx) => retireHub(tx, context, { hubId: 1, force, actor: 'operator' }))

const handOvers: Record<string, (shop: Shop) => Promise<unknown>> = {
  'is retired': (shop) => retire(shop),
  async 'has another owner'({ context }) {
    await context.db.kysely.insertInto('owners').values({ id: 2, name: 'Two' }).execute()
    await context.db.transact((tx) => moveHub(tx, context, { hubId: 1, newOwner: 2 }))
  },
}

const openAlarms = ({ context }: Shop) =>
  context.db.kysely
    .selectFrom('alarms')
    .select(['kind', 'owner_id'])
    .where('cleared_at', 'is', null)
    .orderBy('seq')
    .execute()

onEachProcessor('the owner of late money', (open) => {
  test.for(Object.keys(handOvers))(
    'late money of a cart belongs to the owner at its checkout, with its refused refund, also if the hub %s since',
    async (name) => {
      const shop = await open({ wrapProcessor: unreliable })
      weather.refuses = true
      const { id } = await late(shop)
      await handOvers[name]!(shop)
      await shop.work.drain()
      expect(await shop.refunds(id)).toMatchObject([{ reason: 'late_payment', status: 'failed' }])
      expect(await openAlarms(shop)).toEqual([{ kind: 'refund_failed', owner_id: 1 }])
      weather.refuses = false
      shop.clock.advance(DAY)
      await shop.work.drain()
      expect(await openAlarms(shop)).toEqual([])
      const { kysely } = shop.context.db
      const events = kysely.selectFrom('events').select('owner_id').where('type', '=', 'order.refunded')
      expect(await events.execute()).toEqual([{ owner_id: 1 }])
      const recordsOf = async (ownerId: number) =>
        (await listAudit(kysely, { ownerId, object: `order-${id}`, limit: 9 })).map(({ result }) => result)
      expect([await recordsOf(1), await recordsOf(2)]).toEqual([['failed'], []])
    },
  )

  test.for(Object.keys(handOvers))(
    'a dispute of late money of a cart is reported to the owner at its checkout, also if the hub %s since',
    async (name) => {
      const shop = await open()
      const { ref } = await late(shop)
      await handOvers[name]!(shop)
      await shop.bank.dispute(ref)
      await deliver(shop)
      expect(await openAlarms(shop)).toEqual([{ kind: 'payment_disputed', owner_id: 1 }])
      const events = shop.context.db.kysely.selectFrom('events').select('owner_id')
      expect(await events.where('type', '=', 'payment.disputed').execute()).toEqual([{ owner_id: 1 }])
    },
  )

  test('a payment that is stuck when its hub is retired by --force is an alarm of the owner at its checkout', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const { id } = await checkedOut(shop)
    weather.isAway = true
    await retire(shop, true)
    await shop.work.drain()
    expect(await shop.payments(id)).toMatchObject([{ status: 'canceled', given_up_at: expect.any(Number) }])
    expect(await openAlarms(shop)).toEqual([{ kind: 'payment_stuck', owner_id: 1 }])
  })
})

onEachDatabase('a refused refund of late money of a cart', (open) => {
  /** The processor has refused the refund and all its repetitions. */
  async function refused(): Promise<Service & { id: number }> {
    const service = await openService(open, {
      async openBank(parts) {
        const { processor, bank } = await openSandboxBank(parts)
        return { processor: unreliable(processor), bank }
      },
    })
    const { shop, cloud } = service
    weather.refuses = true
    const { id } = await late(shop)
    for (let day = 0; day < 10; day += 1) {
      await cloud.work.drain()
      shop.clock.advance(DAY)
    }
    expect(await openAlarms(shop)).toContainEqual({ kind: 'refund_failed', owner_id: 1 })
    return { ...service, id }
  }
  const moneyAlarms = async ({ shop }: Service) =>
    (await openAlarms(shop)).filter(({ kind }) => kind === 'refund_failed')

  test('its owner sees the money without the cart, and requests the refund again: that ends the alarm', async () => {
    const service = await refused()
    const { owner, id } = service
    const { json } = await owner('GET', `orders/${id}`)
    const { failed_refunds: failed, ...order } = json as OrderEvidence
    expect(order).toMatchObject({ order_items: [], total: 0, paid: 271, refunded: 0, owed: 271 })
    expect(failed).toMatchObject([{ amount: 271, failure_reason: 'no' }])
    expect((await owner('POST', `orders/${id}/refund`)).status).toBe(402)
    weather.refuses = false
    expect((await owner('POST', `orders/${id}/refund`, { amount: 272 })).status).toBe(422)
    const again = await owner('POST', `orders/${id}/refund`)
    expect(again).toMatchObject({ status: 200, json: { new_status: 'refunded' } })
    expect(await service.shop.bank.intents()).toMatchObject([{ amount: 271, refunded: 271 }])
    expect(await moneyAlarms(service)).toEqual([])
    const further = await owner('POST', `orders/${id}/refund`)
    expect(further.json).toMatchObject({ error: { code: 'already_refunded' } })
  })

  test('its owner records it as paid in another way: that ends the alarm, and the processor is not asked again', async () => {
    const service = await refused()
    const { owner, id, shop, cloud } = service
    const { json } = await owner('GET', `orders/${id}`)
    const [failed] = (json as OrderEvidence).failed_refunds
    const body = { refund_ids: [failed!.refund_id], amount: 271, reason: 'Cash' }
    const settled = await owner('POST', `orders/${id}/refunds/settle`, body)
    expect(settled).toMatchObject({ status: 200, json: { new_status: 'refunded' } })
    weather.refuses = false
    shop.clock.advance(DAY)
    await cloud.work.drain()
    expect(await shop.bank.intents()).toMatchObject([{ amount: 271, refunded: 0 }])
    expect(await moneyAlarms(service)).toEqual([])
  })

  test('units of its cart are not refunded', async () => {
    const { owner, id } = await refused()
    const unit = await owner('POST', `orders/${id}/items/1/refund`)
    expect(unit.json).toMatchObject({ error: { code: 'order_state_conflict' } })
  })

  test('a cart stays private to its customer if its payment took no money', async () => {
    const { owner, shop } = await openService(open)
    const { id } = await declined(shop)
    expect((await owner('GET', `orders/${id}`)).status).toBe(404)
  })
})
