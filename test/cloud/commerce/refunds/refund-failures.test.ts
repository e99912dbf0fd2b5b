import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { ProcessorUnavailable, type CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { refundItem, refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { onEachProcessor, type OpenBankShop } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'
import { deliver, sendEvent } from '../../support/webhooks.ts'

const HOUR = 3_600_000
const who = { mayTouch: () => Promise.resolve(true), actor: 'owner' }
const refund = (shop: Shop, orderId: number, amount?: number, requestKey?: string) =>
  refundOrder(shop.services, { orderId, ...who, amount, requestKey })

type Refund = CardProcessor['createRefund']

/** A shop with a processor that refunds according to `behaviour`, until that is undefined. */
async function troubled(open: OpenBankShop, first: ((real: Refund) => Refund) | undefined) {
  const trouble = { behaviour: first }
  const shop = await open({
    wrapProcessor: (sandbox) => ({
      ...sandbox,
      createRefund(request) {
        const real: Refund = (same) => sandbox.createRefund(same)
        return (trouble.behaviour?.(real) ?? real)(request)
      },
    }),
  })
  const begun = async (method?: string): Promise<number> => {
    const { id } = await shop.paidOrder({ 1: 2 }, method)
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    return id
  }
  return { shop, trouble, begun }
}

const down: (real: Refund) => Refund = () => () => Promise.reject(new ProcessorUnavailable('no connection'))
const late: (real: Refund) => Refund = (real) => async (request) => {
  await real(request)
  throw new ProcessorUnavailable('time out')
}

/** Cents that the processor returned of its only payment. */
async function returned({ bank }: Shop): Promise<number> {
  const [intent] = await bank.intents()
  return intent!.refunded
}

const ready = async (shop: Shop, id: number, dropped: number): Promise<void> => {
  const [item] = await shop.items(id)
  const lines = [{ line_id: item!.id, dropped, doubtful: 0, bins: [1] }]
  await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
}

onEachProcessor('failing refunds', (open) => {
  test.for([
    ['cannot be reached', down],
    ['has executed it and does not answer', late],
  ] as const)(
    'a refund is 503 and paid once if the processor %s, and counts as refunded until then',
    async ([, behaviour]) => {
      const { shop, trouble, begun } = await troubled(open, behaviour)
      const id = await begun()
      await expect(refund(shop, id, 500)).rejects.toMatchObject({ code: 'processor_unavailable' })
      expect((await shop.order(id)).payment_status).toBe('completed')
      await expect(refund(shop, id, 100)).rejects.toMatchObject({ details: { remaining: 41 } })
      trouble.behaviour = undefined
      shop.clock.advance(31_000)
      await shop.work.drain()
      expect(await shop.refunds(id)).toMatchObject([{ amount: 500, status: 'succeeded', in_doubt: 1 }])
      expect([await returned(shop), (await shop.order(id)).payment_status]).toEqual([
        500,
        'partially_refunded',
      ])
    },
  )

  test('a refund without an answer that is requested again is not made twice', async () => {
    const { shop, trouble, begun } = await troubled(open, late)
    const id = await begun()
    const line = () => refundItem(shop.services, { orderId: id, ...who, productId: 1, quantity: 1 })
    await expect(refund(shop, id, 100)).rejects.toMatchObject({ code: 'processor_unavailable' })
    await expect(line()).rejects.toMatchObject({ code: 'processor_unavailable' })
    await expect(line()).rejects.toMatchObject({ code: 'processor_unavailable' })
    trouble.behaviour = undefined
    expect(await line()).toMatchObject({ amount: 270 })
    expect(await refund(shop, id, 100)).toBe('partially_refunded')
    expect(await returned(shop)).toBe(370)
    // Both are done now: a new request is a new refund.
    expect(await line()).toMatchObject({ amount: 171, paymentStatus: 'refunded' })
    expect(await returned(shop)).toBe(541)
  })

  test('a full refund without an answer continues when it is requested again', async () => {
    const { shop, trouble, begun } = await troubled(open, down)
    const id = await begun()
    await expect(refund(shop, id)).rejects.toMatchObject({ code: 'processor_unavailable' })
    trouble.behaviour = undefined
    expect(await refund(shop, id)).toBe('refunded')
    await expect(refund(shop, id)).rejects.toMatchObject({ code: 'already_refunded' })
    expect(await shop.refunds(id)).toHaveLength(1)
  })

  test.for([
    ['queued', [], S.QUEUED],
    ['begun', [{ kind: 'order.preparing', bins: [1] }], S.PREPARING],
  ] as const)(
    'a refund of a unit of an order that is %s, without an answer, asks the hub once for any number of requests',
    async ([, reports, status]) => {
      const { shop, trouble } = await troubled(open, down)
      const { id } = await shop.paidOrder({ 1: 2 })
      for (const entry of reports) await shop.report({ ...entry, order_id: id, bins: [...entry.bins] })
      shop.answer({ kind: 'executed', commandId: 'c', data: {}, durationMs: 5 })
      const unit = () => refundItem(shop.services, { orderId: id, ...who, productId: 1, quantity: 1 })
      for (let i = 0; i < 3; i += 1)
        await expect(unit()).rejects.toMatchObject({ code: 'processor_unavailable' })
      trouble.behaviour = undefined
      expect(await unit()).toMatchObject({ amount: 270, paymentStatus: 'partially_refunded' })
      expect(shop.commands).toMatchObject([{ body: { name: 'reduce_order', lines: [{ wanted: 1 }] } }])
      expect((await shop.order(id)).processing_status).toBe(status)
      expect([await returned(shop), (await shop.refunds(id)).length]).toEqual([270, 1])
    },
  )

  test.for(['key 1', undefined])(
    'a full refund of a queued order without an answer continues when it is requested again (key: %s)',
    async (key) => {
      const { shop, trouble } = await troubled(open, down)
      const { id } = await shop.paidOrder({ 1: 2 })
      await expect(refund(shop, id, undefined, key)).rejects.toMatchObject({ code: 'processor_unavailable' })
      expect(await shop.refunds(id)).toMatchObject([{ reason: 'cancelled', status: 'pending' }])
      await expect(refund(shop, id, undefined, key)).rejects.toMatchObject({ code: 'processor_unavailable' })
      trouble.behaviour = undefined
      expect(await refund(shop, id, undefined, key)).toBe('refunded')
      expect([await returned(shop), (await shop.refunds(id)).length]).toEqual([541, 1])
      // Under its key it gets the same answer; another request comes too late.
      await expect(refund(shop, id, undefined, 'another')).rejects.toMatchObject({ code: 'already_refunded' })
      if (key !== undefined) expect(await refund(shop, id, undefined, key)).toBe('refunded')
    },
  )

  test('a full refund of a queued order without an answer returns the sweep’s result to the same request', async () => {
    const { shop, trouble } = await troubled(open, down)
    const { id } = await shop.paidOrder({ 1: 2 })
    await expect(refund(shop, id, undefined, 'key 1')).rejects.toMatchObject({
      code: 'processor_unavailable',
    })
    trouble.behaviour = undefined
    shop.clock.advance(31_000)
    await shop.work.drain()
    expect(await refund(shop, id, undefined, 'key 1')).toBe('refunded')
    expect([await returned(shop), (await shop.refunds(id)).length]).toEqual([541, 1])
  })

  test('a refund is found by the same request if its process dies after the answer', async () => {
    const { shop, begun } = await troubled(open, undefined)
    const id = await begun()
    expect(await refund(shop, id, 200, 'key 1')).toBe('partially_refunded')
    expect(await refund(shop, id, 200, 'key 1')).toBe('partially_refunded')
    expect(await refund(shop, id, 200, 'key 2')).toBe('partially_refunded')
    expect((await shop.refunds(id)).map(({ amount }) => amount)).toEqual([200, 200])
    expect(await returned(shop)).toBe(400)
    // A day later the key is free for another request.
    shop.clock.advance(24 * HOUR)
    expect(await refund(shop, id, 100, 'key 1')).toBe('partially_refunded')
    expect(await returned(shop)).toBe(500)
  })

  test(
    'a refund at an unreachable processor is retried with growing pauses',
    { timeout: 60_000 },
    async () => {
      const { shop, trouble, begun } = await troubled(open, down)
      const id = await begun()
      await ready(shop, id, 1)
      let asked = 0
      trouble.behaviour = (real) => (request) => {
        asked += 1
        return down(real)(request)
      }
      for (let minute = 0; minute < 24 * 60; minute += 10) {
        shop.clock.advance(10 * 60_000)
        await shop.work.drain()
      }
      expect(asked).toBeGreaterThan(24)
      expect(asked).toBeLessThan(40)
      trouble.behaviour = undefined
      shop.clock.advance(HOUR)
      await shop.work.drain()
      expect(await shop.refunds(id)).toMatchObject([{ reason: 'short', status: 'succeeded' }])
    },
  )

  test('a refund that is answered twice simultaneously is applied once', async () => {
    const { shop, begun } = await troubled(open, (real) => async (request) => {
      await Promise.all([real(request), real(request)])
      return real(request)
    })
    const id = await begun()
    await refund(shop, id, 100)
    expect(await returned(shop)).toBe(100)
  })

  test('a refund with an unexpected error stays recorded and is tried again', async () => {
    const { shop, trouble, begun } = await troubled(open, () => () => Promise.reject(new Error('nonsense')))
    const id = await begun()
    await expect(refund(shop, id, 100)).rejects.toThrow('nonsense')
    expect(await shop.refunds(id)).toMatchObject([{ status: 'pending' }])
    trouble.behaviour = undefined
    shop.clock.advance(31_000)
    await shop.work.drain()
    expect(await shop.refunds(id)).toMatchObject([{ status: 'succeeded' }])
  })

  test('a slow refund is pending until the webhook, and the status is derived again then', async () => {
    const { shop, begun } = await troubled(open, undefined)
    const id = await begun('pm_card_pendingRefund')
    expect(await refund(shop, id)).toBe('completed')
    expect(await shop.refunds(id)).toMatchObject([{ status: 'pending' }])
    await expect(refund(shop, id)).rejects.toMatchObject({ code: 'already_refunded' })
    await deliver(shop, 3)
    expect(await shop.refunds(id)).toMatchObject([{ status: 'succeeded' }])
    expect(await waitingRefunds(shop)).toEqual([])
    expect((await shop.order(id)).payment_status).toBe('refunded')
  })

  test('a slow refund with a lost webhook is queried', async () => {
    const { shop, begun } = await troubled(open, undefined)
    const id = await begun('pm_card_pendingRefund')
    await refund(shop, id)
    await shop.bank.arrive()
    shop.clock.advance(31_000)
    await shop.work.drain()
    expect(await shop.refunds(id)).toMatchObject([{ status: 'succeeded' }])
    expect(await returned(shop)).toBe(541)
  })

  test.for([
    ['done', 'succeeded', undefined],
    ['refused', 'failed', { code: 'refund_failed' }],
  ] as const)(
    'a refund that the webhook reports as %s, without an answer, has that result and is not unconfirmed',
    async ([, status, error]) => {
      const { shop, trouble, begun } = await troubled(open, undefined)
      trouble.behaviour = (real) => async (request) => {
        const { ref } = await real(request)
        const object = { id: ref, status, metadata: request.metadata }
        await sendEvent(shop, { id: 'evt_1', type: 'refund.updated', object })
        throw new ProcessorUnavailable('time out')
      }
      const id = await begun()
      if (error) await expect(refund(shop, id, 500)).rejects.toMatchObject(error)
      else expect(await refund(shop, id, 500)).toBe('partially_refunded')
      expect(await shop.refunds(id)).toMatchObject([{ status, in_doubt: 0 }])
    },
  )

  test('a refund that fails after its success does not count, and can be made again', async () => {
    const { shop, begun } = await troubled(open, undefined)
    const id = await begun()
    await refund(shop, id)
    const [row] = await shop.refunds(id)
    const object = { id: row!.processor_ref, status: 'failed', failure_reason: 'expired_or_canceled_card' }
    for (const event of ['evt_1', 'evt_2'])
      await sendEvent(shop, { id: event, type: 'refund.failed', object })
    expect(await shop.refunds(id)).toMatchObject([
      { status: 'failed', failure_reason: 'expired_or_canceled_card' },
    ])
    expect(await shop.order(id)).toMatchObject({ payment_status: 'completed' })
    expect(await shop.items(id)).toMatchObject([{ refunded_quantity: 0 }])
    // An overtaken event changes nothing.
    await sendEvent(shop, { id: 'evt_0', type: 'refund.updated', object: { ...object, status: 'succeeded' } })
    expect(await shop.refunds(id)).toMatchObject([{ status: 'failed' }])
  })

  test('an owed refund that the processor refuses alarms the owner, and is retried with growing pauses up to a limit', async () => {
    const { shop, begun } = await troubled(open, undefined)
    const id = await begun(shop.bank.unrefundable)
    await ready(shop, id, 1)
    for (let hour = 0; hour < 24 * 8; hour += 1) {
      await shop.work.drain()
      shop.clock.advance(HOUR)
    }
    const rows = await shop.refunds(id)
    expect(rows.map(({ refusals, status }) => ({ refusals, status }))).toEqual(
      [0, 1, 2, 3, 4, 5, 6].map((refusals) => ({ refusals, status: 'failed' })),
    )
    expect(await waitingRefunds(shop)).toEqual([])
    const records = await shop.context.db.kysely.selectFrom('audit_log').selectAll().execute()
    expect(records.map(({ actor, action, result, hub_id }) => ({ actor, action, result, hub_id }))).toEqual(
      rows.map(() => ({ actor: 'service', action: 'orders.refund_item', result: 'failed', hub_id: 1 })),
    )
    expect(JSON.parse(records[0]!.detail)).toMatchObject({
      failure_reason: 'lost_or_stolen_card',
      reason: 'short',
      next_attempt_at: rows[0]!.updated_at + HOUR,
    })
    expect(JSON.parse(records.at(-1)!.detail)).toMatchObject({ next_attempt_at: null })
  })

  test('an owed refund that is refused once and succeeds later is paid once', async () => {
    const { shop, trouble, begun } = await troubled(
      open,
      () => () => Promise.resolve({ ref: 're_no', status: 'failed', failureReason: 'insufficient_funds' }),
    )
    const id = await begun()
    await ready(shop, id, 0)
    await shop.work.drain()
    expect(await shop.refunds(id)).toMatchObject([{ status: 'failed' }])
    // The owner refunds half of it manually in that time.
    trouble.behaviour = undefined
    await refundItem(shop.services, { orderId: id, ...who, productId: 1, quantity: 1 })
    shop.clock.advance(HOUR)
    await shop.work.drain()
    await shop.work.drain()
    expect(
      (await shop.refunds(id)).map(({ amount, quantity, status }) => ({ amount, quantity, status })),
    ).toEqual([
      { amount: 541, quantity: 2, status: 'failed' },
      { amount: 270, quantity: 1, status: 'succeeded' },
      { amount: 271, quantity: 1, status: 'succeeded' },
    ])
    expect([await returned(shop), (await shop.order(id)).payment_status]).toEqual([541, 'refunded'])
  })
})

/** Refunds that are due later. */
const waitingRefunds = ({ context }: Shop) =>
  context.db.kysely.selectFrom('due_work').select('subject').where('kind', '=', 'money/refund').execute()
