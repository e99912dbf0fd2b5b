import type { Tx } from '../../platform/store/database.ts'

export const noticeKinds = ['order_expiring', 'order_unclaimed'] as const
export type NoticeKind = (typeof noticeKinds)[number]

export interface Message {
  title: string
  body: string
}

/** What a customer reads. */
export function messageOf(kind: NoticeKind, hubName: string): Message {
  switch (kind) {
    case 'order_expiring':
      return {
        title: 'Your cart is about to expire',
        body: `What you chose at ${hubName} is kept for a few minutes more.`,
      }
    case 'order_unclaimed':
      return { title: 'Your order is waiting', body: `Your order is ready at ${hubName}. Please collect it.` }
  }
}

export interface Notice {
  kind: NoticeKind
  userId: number
  orderId: number
}

/**
 * Puts a notice into the outbox, once for each device that its customer has now and wants to hear from; of an order and a
 * kind there is never a second one. False where there has been one already.
 */
export async function putNotice({ q }: Tx, now: number, { kind, userId, orderId }: Notice): Promise<boolean> {
  const earlier = await q
    .selectFrom('notifications')
    .select('id')
    .where('order_id', '=', orderId)
    .where('kind', '=', kind)
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
        push_config_id,
        state: 'pending',
        attempts: 0,
        due_at: now,
        error: null,
        created_at: now,
        updated_at: now,
      })),
    )
    .onConflict((conflict) => conflict.columns(['order_id', 'kind', 'push_config_id']).doNothing())
    .returning('id')
    .execute()
  return inserted.length > 0
}
