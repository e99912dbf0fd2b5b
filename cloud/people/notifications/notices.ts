import type { Selectable } from 'kysely'
import { moneyText } from '../../../protocol/model/money.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { lockOrder, type OrderRow } from '../../commerce/orders/order-rows.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, Unavailable, type Outcome, type Work, type WorkKinds } from '../../platform/work/runner.ts'
import type { Device, Message, Sender, SendResult } from './sender.ts'

/** The push service per platform; `none` is for customers without a device. */
export type Senders = Record<Device['platform'] | 'none', Sender>

const MAX_ATTEMPTS = 6

/** Notices to customers about their orders, and their delivery. */
export const noticeWork = (context: CloudContext, senders: Senders): WorkKinds => ({
  'notice.expiring': { run: ({ subject }) => noticeExpiring(context, Number(subject)) },
  'notice.moved': { run: ({ subject }) => noticeMoved(context, Number(subject)) },
  'notice.refunded': { run: ({ subject }) => noticeRefunded(context, Number(subject)) },
  'notice.unclaimed': { run: ({ subject }) => noticeUnclaimed(context, Number(subject)) },
  'notice.deliver': { run: (work) => deliver(context, senders, work) },
})

/** The text that a customer reads. */
export function messageOf(kind: NoticeKind, hubName: string, money: string | null = null): Message {
  switch (kind) {
    case 'order_ready':
      return { title: 'Your order is ready', body: `Come and take it at ${hubName}.` }
    case 'order_uncollected':
      return { title: 'Your order was not collected', body: `It waited at ${hubName} for too long.` }
    case 'order_failed':
      return {
        title: 'Your order could not be completed',
        body: `${hubName}: the products that you did not get are refunded.`,
      }
    case 'order_timed_out':
      return {
        title: 'Your order took too long',
        body: `${hubName} could not prepare it in time. You get your money back.`,
      }
    case 'order_refunded':
      return { title: 'You get money back', body: `${money} for your order at ${hubName}.` }
    case 'order_expiring':
      return {
        title: 'Your cart is about to expire',
        body: `What you chose at ${hubName} is kept for a few minutes more.`,
      }
    case 'order_unclaimed':
      return { title: 'Your order is waiting', body: `Your order is ready at ${hubName}. Please collect it.` }
  }
}

interface Notice {
  kind: NoticeKind
  userId: number
  orderId: number
  /** Distinguishes several notices of one kind. */
  ref?: number
}

/** Sends a notice of an order's new status, unless the status has changed since. */
function noticeMoved(context: CloudContext, orderId: number): Promise<Outcome> {
  return context.db.transact(async (tx) => {
    const order = await lockOrder(tx, orderId)
    const kind = order && kindOf(order)
    return kind === undefined ? done : reported(tx, context, { kind, userId: order!.user_id, orderId })
  })
}

function kindOf({ processing_status, failure_reason }: OrderRow): NoticeKind | undefined {
  if (processing_status === OrderStatus.READY) return 'order_ready'
  if (processing_status === OrderStatus.TIMED_OUT) return 'order_timed_out'
  if (processing_status !== OrderStatus.FAILED) return undefined
  return failure_reason === 'unclaimed' ? 'order_uncollected' : 'order_failed'
}

/** Sends a notice of a refund. */
function noticeRefunded(context: CloudContext, refundId: number): Promise<Outcome> {
  return context.db.transact(async (tx) => {
    const refund = await tx.q
      .selectFrom('refunds')
      .innerJoin('orders', 'orders.id', 'refunds.order_id')
      .select(['orders.id', 'orders.user_id'])
      .where('refunds.id', '=', refundId)
      .where('refunds.status', '=', 'succeeded')
      .executeTakeFirst()
    if (!refund) return done
    const { id: orderId, user_id: userId } = refund
    return reported(tx, context, { kind: 'order_refunded', userId, orderId, ref: refundId })
  })
}

/** Sends a notice before a non-empty cart expires. */
function noticeExpiring(context: CloudContext, orderId: number): Promise<Outcome> {
  const { runtime, settings } = context
  return context.db.transact(async (tx) => {
    const order = await lockOrder(tx, orderId)
    if (order?.processing_status !== OrderStatus.NEW) return done
    const dueAt = order.touched_at + settings.idleOrderMs - settings.expiringNoticeMs
    if (dueAt > runtime.clock.now()) return { next: dueAt }
    const item = await tx.q
      .selectFrom('order_items')
      .select('id')
      .where('order_id', '=', orderId)
      .executeTakeFirst()
    // The cart is empty, but may be filled yet.
    if (!item) return { next: order.touched_at + settings.idleOrderMs }
    return reported(tx, context, { kind: 'order_expiring', userId: order.user_id, orderId })
  })
}

/** Sends a notice that an order has waited in its bins for long. */
function noticeUnclaimed(context: CloudContext, orderId: number): Promise<Outcome> {
  return context.db.transact(async (tx) => {
    const order = await lockOrder(tx, orderId)
    if (order?.processing_status !== OrderStatus.READY) return done
    return reported(tx, context, { kind: 'order_unclaimed', userId: order.user_id, orderId })
  })
}

async function reported(tx: Tx, { runtime }: CloudContext, notice: Notice): Promise<Outcome> {
  const isNew = await putNotice(tx, runtime.clock.now(), notice)
  return { next: null, affected: isNew ? [notice.orderId] : [] }
}

/**
 * Adds a notice to the outbox, once for each device of its customer that accepts it. An order gets each kind
 * only once. Returns false if that notice exists already.
 */
async function putNotice(tx: Tx, now: number, { kind, userId, orderId, ref = 0 }: Notice): Promise<boolean> {
  const { q } = tx
  const earlier = await q
    .selectFrom('notifications')
    .select('id')
    .where('order_id', '=', orderId)
    .where('kind', '=', kind)
    .where('ref', '=', ref)
    .executeTakeFirst()
  if (earlier) return false
  const devices = await q
    .selectFrom('push_configs as d')
    .innerJoin('users as u', 'u.id', 'd.user_id')
    .select('d.id')
    .where('d.user_id', '=', userId)
    .where('d.enabled', '=', 1)
    .where('u.notify_push', '=', 1)
    .execute()
  const targets = devices.length > 0 ? devices.map(({ id }) => id) : [0]
  const inserted = await q
    .insertInto('notifications')
    .values(
      targets.map((push_config_id) => ({
        user_id: userId,
        order_id: orderId,
        kind,
        ref,
        push_config_id,
        state: 'pending',
        error: null,
        created_at: now,
        updated_at: now,
      })),
    )
    .onConflict((conflict) => conflict.columns(['order_id', 'kind', 'ref', 'push_config_id']).doNothing())
    .returning('id')
    .execute()
  await schedule(
    tx,
    'notice.deliver',
    inserted.map(({ id }) => id),
    now,
  )
  return inserted.length > 0
}

type NoticeRow = Selectable<Tables['notifications']>
type NoticeKind = NoticeRow['kind']

/**
 * Sends a notice at least once. After a sender's failure or a crash, it is unknown whether the notice
 * arrived, and it is sent again. A duplicate is better than a customer who does not learn that the order
 * waits. The lease of the work is the only claim on a notice; a device replaces the first copy by the second
 * (`tag`).
 */
async function deliver(
  context: CloudContext,
  senders: Senders,
  { subject, attempts }: Work,
): Promise<Outcome> {
  const { db, checkpoint } = context
  const notice = await db.kysely
    .selectFrom('notifications')
    .selectAll()
    .where('id', '=', Number(subject))
    .where('state', '=', 'pending')
    .executeTakeFirst()
  if (!notice) return done
  const isLast = attempts >= MAX_ATTEMPTS
  let result: SendResult
  try {
    result = await send(context, senders, notice)
  } catch (error) {
    if (isLast) await record(context, notice, 'unknown')
    throw error
  }
  checkpoint('notice.after-send')
  if (result !== 'later' || isLast) await record(context, notice, result)
  else throw new Unavailable('the notice was not taken')
  return done
}

async function send(context: CloudContext, senders: Senders, notice: NoticeRow): Promise<SendResult> {
  const target = await targetOf(context, notice)
  context.checkpoint('notice.before-send')
  if (!target) return 'gone'
  const { device, digest, hubName, money } = target
  const { kind, order_id: orderId } = notice
  const about = { orderId, kind, tag: tagOf(notice) }
  const result = await senders[device?.platform ?? 'none'].send(
    device,
    messageOf(kind, hubName, money),
    about,
  )
  return result === 'gone' && digest !== null ? forget(context, notice, digest) : result
}

/**
 * Removes a device with an invalid token. If the device has sent another token in the meantime, that one is
 * used later.
 */
async function forget(
  { db }: CloudContext,
  { push_config_id }: NoticeRow,
  digest: string,
): Promise<SendResult> {
  await db.kysely
    .deleteFrom('push_configs')
    .where('id', '=', push_config_id)
    .where('token_digest', '=', digest)
    .execute()
  const left = await db.kysely
    .selectFrom('push_configs')
    .select('id')
    .where('id', '=', push_config_id)
    .executeTakeFirst()
  return left ? 'later' : 'gone'
}

/**
 * Identifies a notice on a device. A restored database assigns the same numbers again, so the creation time
 * is included.
 */
const tagOf = ({ id, created_at }: NoticeRow): string => `${id}-${created_at}`

/** Records the final result of a notice. */
async function record(
  { db, runtime }: CloudContext,
  notice: NoticeRow,
  result: SendResult | 'unknown',
): Promise<void> {
  await db.kysely
    .updateTable('notifications')
    .set({
      state: result === 'sent' ? 'sent' : 'failed',
      error: result === 'sent' ? null : result,
      updated_at: runtime.clock.now(),
    })
    .where('id', '=', notice.id)
    .execute()
}

/** The recipient of a notice. */
interface Target {
  device: Device | null
  /** Digest of the device's token. */
  digest: string | null
  hubName: string
  money: string | null
}

/** Undefined if the device has been removed in the meantime. */
async function targetOf({ db, sealer }: CloudContext, notice: NoticeRow): Promise<Target | undefined> {
  const order = await db.kysely
    .selectFrom('orders as o')
    .innerJoin('hubs as h', 'h.id', 'o.hub_id')
    .leftJoin('refunds as r', (join) => join.onRef('r.order_id', '=', 'o.id').on('r.id', '=', notice.ref))
    .select(['h.name', 'o.currency', 'r.amount'])
    .where('o.id', '=', notice.order_id)
    .executeTakeFirst()
  if (!order) return undefined
  const money = order.amount === null ? null : moneyText(order.amount, order.currency)
  const about = { hubName: order.name, money }
  if (notice.push_config_id === 0) return { device: null, digest: null, ...about }
  const config = await db.kysely
    .selectFrom('push_configs')
    .select(['platform', 'push_token', 'token_digest'])
    .where('id', '=', notice.push_config_id)
    .executeTakeFirst()
  if (!config) return undefined
  const device = { platform: config.platform, token: sealer.open('push token', config.push_token) }
  return { device, digest: config.token_digest, ...about }
}
