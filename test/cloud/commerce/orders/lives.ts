import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { commerceWork } from '../../../../cloud/commerce/work.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import type { VerifyIdentity } from '../../../../cloud/platform/credentials/identity-token.ts'
import { ApiError } from '../../../../cloud/platform/api-error.ts'
import { createOrder, reorder, setItem } from '../../../../cloud/commerce/orders/cart.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { transferOrder } from '../../../../cloud/commerce/orders/transfer-order.ts'
import { confirmPayment } from '../../../../cloud/commerce/payments/confirm.ts'
import { confirmClaim } from '../../support/confirm-claim.ts'
import { pay, payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable, type CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { sandboxWork } from '../../../../cloud/commerce/processors/sandbox/sandbox.ts'
import { signPayload } from '../../../../cloud/platform/http/signature.ts'
import type { CommerceServices } from '../../../../cloud/commerce/services.ts'
import { receiveWebhook } from '../../../../cloud/commerce/payments/webhook.ts'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { violationsOf } from '../../../invariants/check.ts'
import { collectCloud } from '../../../invariants/collect-cloud.ts'
import type { Violation } from '../../../invariants/evidence.ts'
import { paperHub } from '../../support/paper-hub.ts'
import { openShop } from '../../../world/shop.ts'
import { USERS, type Step } from './life-steps.ts'

const QUANTITIES = [4, 2, 1]
const PRICES = [199, 1050, 333]
const SECRET = 'whsec'

/** Result of a life: violations, and the number of events, so that an empty life is noticed. */
export interface Outcome {
  violations: (Violation | { invariant: 'stock'; text: string })[]
  statuses: string[]
}

/** Runs the steps, waits until all work has ended, and returns the violations during and after the run. */
export async function live(db: CloudDatabase, groups: readonly Step[][]): Promise<Outcome> {
  let isUp = true
  let isEarly = false
  const shop = await openShop(db, {
    products: QUANTITIES.map((quantity, index) => ({ price: PRICES[index]!, quantity })),
    wrapProcessor: (sandbox) => unreliable(sandbox),
  })
  const { context, clock } = shop
  const q = db.kysely
  const hub = paperHub(shop, QUANTITIES)
  const services: CommerceServices = {
    ...shop.services,
    commands: { send: (request) => hub.execute(request) },
  }
  const work = new WorkRunner(context, commerceWork(services))
  for (let id = 1; id <= USERS; id += 1) await shop.customer()
  // The first user is no guest: carts of the others can be transferred to this user.
  for (let id = 1; id <= USERS; id += 1)
    await q
      .updateTable('users')
      .set({ identity: `user-${id}`, is_anonymous: id === 1 ? 0 : 1 })
      .where('id', '=', id)
      .execute()
  const verify: VerifyIdentity = (identity) =>
    Promise.resolve({
      identity,
      claims: {
        phoneNumber: null,
        email: null,
        emailVerified: false,
        anonymous: identity !== 'user-1',
        roles: [],
      },
    })
  const found: Outcome['violations'] = []

  /** A processor that may be unreachable, or may send an event before its answer. */
  function unreliable(sandbox: CardProcessor): CardProcessor {
    const reach = async <T>(work: () => Promise<T>): Promise<T> => {
      if (!isUp) throw new ProcessorUnavailable()
      const answer = await work()
      if (isEarly) await sendEvent((events) => events.at(-1))
      return answer
    }
    return {
      ...sandbox,
      createIntent: (request) => reach(() => sandbox.createIntent(request)),
      confirmIntent: (ref) => reach(() => sandbox.confirmIntent(ref)),
      readIntent: (ref) => reach(() => sandbox.readIntent(ref)),
      cancelIntent: (ref) => reach(() => sandbox.cancelIntent(ref)),
      abandonIntent: (request) => reach(() => sandbox.abandonIntent(request)),
      createRefund: (request) => reach(() => sandbox.createRefund(request)),
      readRefund: (ref) => reach(() => sandbox.readRefund(ref)),
      listRefunds: (ref) => reach(() => sandbox.listRefunds(ref)),
      listMoves: (request) => reach(() => sandbox.listMoves(request)),
    }
  }

  async function sendEvent(choose: (events: { id: string; body: string }[]) => { body: string } | undefined) {
    const events = await q
      .selectFrom('sandbox_events')
      .select(['id', 'body'])
      .orderBy('created_at')
      .orderBy('id')
      .execute()
    const event = choose(events)
    if (event) await receiveWebhook(context, SECRET, event.body, signPayload(event.body, SECRET, clock.now()))
  }

  const processorWork = new WorkRunner(
    context,
    sandboxWork({
      context,
      secret: SECRET,
      async deliver(body, signature) {
        await receiveWebhook(context, SECRET, body, signature)
        return true
      },
    }),
  )
  const deliver = () => processorWork.drain()

  /** One of a user's orders, newest first. */
  async function orderOf(userId: number, index: number): Promise<number | undefined> {
    const rows = await q
      .selectFrom('orders')
      .select('id')
      .where('user_id', '=', userId)
      .orderBy('id', 'desc')
      .limit(index + 1)
      .execute()
    return rows[index]?.id ?? rows.at(-1)?.id
  }

  async function take(step: Step): Promise<void> {
    switch (step.do) {
      case 'put': {
        const { id } = await createOrder(context, { userId: step.user, hubId: 1 })
        const change = { productId: step.product, quantity: step.quantity }
        return void (await setItem(context, { userId: step.user, orderId: id }, change))
      }
      case 'pay': {
        const orderId = await orderOf(step.user, step.order)
        if (orderId === undefined) return
        const request = { userId: step.user, orderId }
        return void (step.method === 'wallet'
          ? await payFromWallet(services, request)
          : await pay(services, { ...request, method: step.method }))
      }
      case 'deposit':
        if (step.method !== 'wallet' && step.method !== 'external')
          await deposit(services, { userId: step.user, amountCents: 2500, method: step.method })
        return
      case 'integrator':
        return void (await confirmClaim(context, { hubId: 1, bin: step.bin, key: 'lk_test' }))
      case 'confirm':
      case 'delete':
      case 'reorder':
      case 'refund':
      case 'transfer': {
        const orderId = await orderOf(step.user, step.order)
        return orderId === undefined ? undefined : atOrder(step, orderId)
      }
      case 'hub':
        await hub.receive()
        return hub.act(step.act, step.pick)
      case 'hub reports':
        return hub.send(step.count)
      case 'webhook':
        return sendEvent((events) => events.at(-1 - (step.pick % Math.max(1, events.length))))
      case 'webhook lost': {
        // All events except those of deposits: only these credit a wallet (C §4.6), and a processor repeats
        // them until they are accepted.
        const due = await q
          .selectFrom('sandbox_events')
          .select('id')
          .where('delivered_at', 'is', null)
          .where('body', 'not like', '%deposit_id%')
          .orderBy('created_at')
          .orderBy('id')
          .execute()
        const lost = due[step.pick % Math.max(1, due.length)]
        if (lost)
          await q.updateTable('sandbox_events').set({ delivered_at: 0 }).where('id', '=', lost.id).execute()
        return
      }
      case 'events':
        await deliver()
        return
      case 'sweep':
        await work.drain()
        return
      case 'processor':
        isUp = step.isUp
        isEarly = step.early
        return
      case 'time':
        clock.advance(step.minutes * 60_000)
        return shop.hear()
    }
  }

  async function atOrder(step: Extract<Step, { order: number }>, orderId: number): Promise<void> {
    const key = { userId: step.user, orderId }
    switch (step.do) {
      case 'confirm': {
        const payment = (await shop.payments(orderId)).at(-1)
        if (payment)
          await confirmPayment(services, { ...key, paymentId: payment.processor_ref ?? `pay_${payment.id}` })
        return
      }
      case 'delete':
        return void (await deleteOrder(services, key, 'customer'))
      case 'reorder':
        return void (await reorder(context, { userId: step.user, sourceOrderId: orderId, targetHubId: 1 }))
      case 'refund':
        return void (await refundOrder(services, {
          orderId,
          mayTouch: () => Promise.resolve(true),
          actor: 'owner',
          ...(step.part > 0 && { amount: step.part * 100 }),
        }))
      case 'transfer':
        return void (await transferOrder(context, verify, {
          userId: 1,
          anonymousUserId: step.user,
          orderId,
          anonymousToken: `user-${step.user}`,
        }))
      case 'pay':
        return
    }
  }

  /** An error answer is an answer; anything else ends the life. */
  const taken = async (step: Step): Promise<void> => {
    try {
      await take(step)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }

  async function checkStock(): Promise<void> {
    const products = await q.selectFrom('products').select(['id', 'quantity', 'reserved']).execute()
    const promised = await q
      .selectFrom('order_items')
      .select((eb) => ['product_id', eb.fn.sum<number>('reserved').as('units')])
      .groupBy('product_id')
      .execute()
    // An unconfirmed unit resolved as dropped stays reserved until its order ends, and has left the shelf.
    const fallen = await q
      .selectFrom('stock_ledger as l')
      .innerJoin('order_items as i', 'i.id', 'l.item_id')
      .select((eb) => ['i.id', 'i.product_id', 'i.qty_dropped', eb.fn.countAll<number>().as('units')])
      .where('l.kind', '=', 'dropped')
      .where('i.reserved', '>', 0)
      .groupBy(['i.id', 'i.product_id', 'i.qty_dropped'])
      .execute()
    // A hub may report units late that fell for an order after the cloud had ended it. Others have bought them by then. The
    // order that the hub cannot fill is refunded (I3).
    const late = await q
      .selectFrom('stock_ledger as l')
      .innerJoin('orders as o', 'o.id', 'l.order_id')
      .select((eb) => ['l.product_id', eb.fn.countAll<number>().as('units')])
      .where('l.kind', '=', 'dropped')
      .where('o.processing_status', 'in', [OrderStatus.CANCELLED, OrderStatus.TIMED_OUT])
      .whereRef('l.at', '>=', 'o.finished_at')
      .groupBy('l.product_id')
      .execute()
    for (const { id, quantity, reserved } of products) {
      const overtaken = late.find(({ product_id }) => product_id === id)?.units ?? 0
      const say = (text: string) => found.push({ invariant: 'stock', text: `product ${id}: ${text}` })
      if (quantity < 0) say(`${quantity} units`)
      const undelivered = fallen
        .filter(({ product_id }) => product_id === id)
        .reduce((sum, { units, qty_dropped }) => sum + units - qty_dropped, 0)
      if (reserved < 0 || reserved > quantity + undelivered + overtaken)
        say(`${reserved} of ${quantity} units are promised`)
      const units = promised.find(({ product_id }) => product_id === id)?.units ?? 0
      if (units !== reserved) say(`${reserved} units are promised, to orders ${units}`)
    }
  }

  for (const group of groups) {
    await Promise.all(group.map(taken))
    await checkStock()
  }

  // All work ends: the processor is up, the hub finishes started orders, and time passes.
  isUp = true
  isEarly = false
  for (let round = 0; round < 20; round += 1) {
    clock.advance(10 * 60_000)
    await shop.hear()
    await work.drain()
    await deliver()
    await hub.receive()
    hub.finish()
    await hub.send(hub.unsent())
  }
  // A refused refund is repeated; a refund that has just started is completed.
  for (let round = 0; round < 3; round += 1) await work.drain()
  await checkStock()
  const cloud = await collectCloud(q, 1)
  found.push(
    ...violationsOf({
      ...hub.evidence(),
      cloud,
      staleCommands: new Set(),
      commandOfOperation: new Map(),
    }),
  )
  return {
    violations: found,
    statuses: cloud.orders.map((row) => `${row.processing_status} ${row.payment_status}`),
  }
}
