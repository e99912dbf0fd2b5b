import { beforeEach, expect, test } from 'vitest'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable, type CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { moveHub, retireHub } from '../../../../cloud/operations/ownership/hand-over.ts'
import { deleteUser } from '../../../../cloud/people/users/delete-user.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import { testMedia } from '../../support/media.ts'
import { deliver, sendEvent } from '../../support/webhooks.ts'
import { droppedLines, type Shop } from '../../../world/shop.ts'

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

/** A processor that can be away, or report every refund as pending. Counts the questions about refunds. */
const weather = { isAway: false, isSlow: false, asked: 0 }
beforeEach(() => void Object.assign(weather, { isAway: false, isSlow: false, asked: 0 }))
function unreliable(real: CardProcessor): CardProcessor {
  const answer = async (
    ask: () => ReturnType<CardProcessor['readRefund']>,
  ): ReturnType<CardProcessor['readRefund']> => {
    weather.asked += 1
    if (weather.isAway) throw new ProcessorUnavailable('away')
    const refund = await ask()
    return weather.isSlow ? { ...refund, status: 'pending', failureReason: null } : refund
  }
  return {
    ...real,
    createRefund: (request) => answer(() => real.createRefund(request)),
    readRefund: (ref) => answer(() => real.readRefund(ref)),
  }
}

/** A paid order that fails at its hub: the service owes a refund of 271 cents. */
async function owing(shop: Shop, method = 'pm_card_pendingRefund'): Promise<number> {
  const { id } = await shop.paidOrder({ 1: 1 }, method)
  await fails(shop, id)
  return id
}

const fails = (shop: Shop, id: number) =>
  shop.report({ kind: 'order.failed', order_id: id, reason: 'jam', bins: [], lines: [] })

async function days(shop: Shop, count: number): Promise<void> {
  for (let day = 0; day < count; day += 1) {
    await shop.work.drain()
    shop.clock.advance(DAY)
  }
  await shop.work.drain()
}

/** Lets the time of a refund pass that has just been recorded. */
const becomesStuck = (shop: Shop) => days(shop, shop.context.settings.refundStuckMs / DAY)

async function openAlarms({ context }: Shop) {
  const rows = await context.db.kysely
    .selectFrom('alarms')
    .select(['kind', 'subject', 'owner_id', 'hub_id', 'message', 'details'])
    .where('cleared_at', 'is', null)
    .orderBy('seq')
    .execute()
  return rows.map(({ details, ...row }) => ({ ...row, details: JSON.parse(details) as object }))
}

/** The processor completes the pending refunds, which ends their alarms. */
async function succeed(shop: Shop): Promise<void> {
  await shop.bank.arrive()
  await days(shop, 1)
  expect(await openAlarms(shop)).toEqual([])
}

const stuck = (id: number) => ({ kind: 'payment_stuck', subject: `refund ${id}`, owner_id: 1, hub_id: 1 })

onEachProcessor('refunds without a final answer of the processor', (open) => {
  test('a refund that stays pending raises an alarm after two weeks, and its success ends the alarm', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const id = await owing(shop)
    await days(shop, 13)
    expect(await openAlarms(shop)).toEqual([])
    await days(shop, 1)
    const [refund] = await shop.refunds(id)
    expect(await openAlarms(shop)).toEqual([
      {
        ...stuck(refund!.id),
        message: `Refund ${refund!.id} has no final result at its processor, and its customer waits for the money (order ${id}).`,
        details: {
          refund_id: refund!.id,
          order_id: id,
          payment_id: refund!.payment_id,
          processor: shop.bank.name,
          processor_ref: refund!.processor_ref,
          amount: 271,
        },
      },
    ])
    expect((await shop.order(id)).payment_status).toBe('completed')
    await days(shop, 30)
    expect(await shop.context.db.kysely.selectFrom('alarms').select('count').execute()).toEqual([
      { count: 1 },
    ])
    await succeed(shop)
    expect(await shop.refunds(id)).toMatchObject([{ status: 'succeeded', goal: 'done', given_up_at: null }])
    expect((await shop.order(id)).payment_status).toBe('refunded')
    expect(await shop.bank.refunds()).toMatchObject([{ amount: 271 }])
  })

  test('a stuck refund is asked about at least once an hour', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    await owing(shop)
    await becomesStuck(shop)
    await days(shop, 10)
    for (let hour = 0; hour < 5; hour += 1) {
      weather.asked = 0
      shop.clock.advance(HOUR)
      await shop.work.drain()
      expect(weather.asked).toBeGreaterThan(0)
    }
  })

  test('an event of the processor ends the alarm of a stuck refund', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const id = await owing(shop)
    await becomesStuck(shop)
    expect(await openAlarms(shop)).toHaveLength(1)
    await deliver(shop, 3)
    expect(await shop.refunds(id)).toMatchObject([{ status: 'succeeded' }])
    expect(await openAlarms(shop)).toEqual([])
  })

  test('a stuck refund that fails is an alarm of a failed refund, and its repetition has a time of its own', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const id = await owing(shop)
    await becomesStuck(shop)
    const [refund] = await shop.refunds(id)
    const { processor_ref: ref } = refund!
    await shop.bank.returnRefund(ref!)
    await sendEvent(shop, { id: 'evt_back', type: 'refund.failed', object: { id: ref, status: 'failed' } })
    expect(await openAlarms(shop)).toMatchObject([{ kind: 'refund_failed', subject: `order ${id}` }])
    await days(shop, 13)
    const kinds = async () => (await openAlarms(shop)).map(({ kind, subject }) => `${kind} ${subject}`)
    const failed = `refund_failed order ${id}`
    expect(await kinds()).toEqual([failed])
    const [, again] = await shop.refunds(id)
    await days(shop, 2)
    expect(await kinds()).toEqual([failed, `payment_stuck refund ${again!.id}`])
    await shop.bank.arrive()
    await days(shop, 1)
    expect(await kinds()).toEqual([])
    expect((await shop.bank.intents())[0]).toMatchObject({ refunded: 271 })
  })

  test('a refund at a processor that is away for weeks raises an alarm, which then names the id of the processor, and the money is refunded once', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    weather.isAway = true
    const id = await owing(shop)
    await days(shop, 13)
    expect(await openAlarms(shop)).toEqual([])
    await days(shop, 1)
    const [refund] = await shop.refunds(id)
    expect(await openAlarms(shop)).toMatchObject([{ ...stuck(refund!.id), details: { processor_ref: null } }])
    await days(shop, 7)
    Object.assign(weather, { isAway: false, isSlow: true })
    await days(shop, 1)
    const processor_ref = (await shop.refunds(id))[0]!.processor_ref
    expect(processor_ref).not.toBeNull()
    expect(await openAlarms(shop)).toMatchObject([{ ...stuck(refund!.id), details: { processor_ref } }])
    await shop.bank.arrive()
    weather.isSlow = false
    await days(shop, 1)
    expect(await openAlarms(shop)).toEqual([])
    expect(await shop.refunds(id)).toMatchObject([{ status: 'succeeded' }])
    expect(await shop.bank.refunds()).toMatchObject([{ amount: 271 }])
  })

  test('a refund that an earlier version recorded without a time limit raises the alarm two weeks after it began', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const id = await owing(shop)
    await shop.work.drain()
    const q = shop.context.db.kysely
    await q.updateTable('money_operations').set({ give_up_at: null }).where('kind', '=', 'refund').execute()
    await days(shop, 13)
    expect(await openAlarms(shop)).toEqual([])
    await days(shop, 1)
    const [refund] = await shop.refunds(id)
    expect(await openAlarms(shop)).toMatchObject([stuck(refund!.id)])
    await succeed(shop)
  })

  test('each stuck refund of an order has an alarm of its own', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const { id } = await shop.paidOrder({ 1: 1, 2: 1 }, 'pm_card_pendingRefund')
    await fails(shop, id)
    await becomesStuck(shop)
    const ids = (await shop.refunds(id)).map((refund) => refund.id)
    expect(ids).toHaveLength(2)
    // A database server may raise them in any order.
    const subjects = (await openAlarms(shop)).map(({ kind, subject }) => `${kind} ${subject}`)
    expect(subjects.toSorted()).toEqual(ids.map((each) => `payment_stuck refund ${each}`).toSorted())
    await succeed(shop)
  })

  test('a refund of a person in the pages of the processor that stays pending raises the alarm', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const { id } = await shop.paidOrder({ 1: 1 })
    await shop.report({
      kind: 'order.ready',
      order_id: id,
      bins: [1],
      lines: droppedLines(await shop.items(id)),
    })
    const [intent] = await shop.bank.intents()
    const object = {
      id: 're_by_hand',
      amount: 100,
      status: 'pending',
      payment_intent: intent!.id,
      metadata: {},
    }
    await sendEvent(shop, { id: 'evt_hand', type: 'refund.updated', object })
    weather.isAway = true
    await becomesStuck(shop)
    const [refund] = await shop.refunds(id)
    expect(refund).toMatchObject({ reason: 'processor', status: 'pending' })
    expect(await openAlarms(shop)).toContainEqual(expect.objectContaining(stuck(refund!.id)))
  })

  test.for(['is retired', 'has another owner'])(
    'a stuck refund is an alarm of the owner at the sale, also if the hub %s since',
    async (what) => {
      const shop = await open({ wrapProcessor: unreliable })
      const id = await owing(shop)
      const { context } = shop
      await context.db.kysely.insertInto('owners').values({ id: 2, name: 'Two' }).execute()
      await context.db.transact<unknown>((tx) =>
        what === 'is retired'
          ? retireHub(tx, context, { hubId: 1, force: false, actor: 'operator' })
          : moveHub(tx, context, { hubId: 1, newOwner: 2 }),
      )
      await becomesStuck(shop)
      const [refund] = await shop.refunds(id)
      expect(await openAlarms(shop)).toMatchObject([stuck(refund!.id)])
      await succeed(shop)
    },
  )

  test('a stuck refund of late money is an alarm of the owner at the checkout', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    const method = 'pm_card_authenticationRequired'
    const { payment_id: ref } = await pay(shop.services, { userId, orderId: id, method })
    await sendEvent(shop, { id: 'evt_no', type: 'payment_intent.payment_failed', object: { id: ref } })
    await shop.bank.take(ref)
    weather.isSlow = true
    await becomesStuck(shop)
    const [refund] = await shop.refunds(id)
    expect(refund).toMatchObject({ reason: 'late_payment', status: 'pending' })
    expect(await openAlarms(shop)).toMatchObject([stuck(refund!.id)])
    weather.isSlow = false
    await days(shop, 1)
    expect(await openAlarms(shop)).toEqual([])
  })

  test('the refund of a deleted user raises the alarm, and its success ends the alarm', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const id = await owing(shop)
    const { user_id: userId } = await shop.order(id)
    await shop.work.drain()
    const claims = { phoneNumber: null, email: null, emailVerified: false, anonymous: true, roles: [] }
    const caller = { kind: 'user', actor: 'x', identity: 'x', claims, userId } as const
    await deleteUser(shop.services, testMedia(shop.context), caller, { forfeit: false })
    await becomesStuck(shop)
    const [refund] = await shop.refunds(id)
    expect(await openAlarms(shop)).toMatchObject([stuck(refund!.id)])
    await succeed(shop)
  })

  test('a refund that is made in time raises no alarm', async () => {
    const shop = await open({ wrapProcessor: unreliable })
    const id = await owing(shop)
    await shop.work.drain()
    shop.clock.advance(shop.context.settings.refundStuckMs - MINUTE)
    await shop.bank.arrive()
    await days(shop, 2)
    expect(await shop.refunds(id)).toMatchObject([{ status: 'succeeded' }])
    const { kysely } = shop.context.db
    expect(await kysely.selectFrom('alarms').select('kind').execute()).toEqual([])
  })
})
