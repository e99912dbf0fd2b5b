import type { Cancel } from '../../../protocol/model/runtime.ts'
import { everyInBackground, isolated } from '../../platform/work/background.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Selectable } from 'kysely'
import type { Tables } from '../../platform/store/schema.ts'
import { messageOf, noticeKinds } from './notice.ts'
import type { Device, Sender, SendResult } from './sender.ts'

const BATCH = 50
const PERIOD_MS = 5000
const MAX_ATTEMPTS = 6
const FIRST_RETRY_MS = 30_000

/** By which service a device is reached; `none` is for customers without any. */
export type Senders = Record<Device['platform'] | 'none', Sender>

/**
 * Sends what is in the outbox of notices. A notice is claimed, in a commit of its own, before its sender is called: a
 * process that dies in between has perhaps sent it, and nobody sends it again. One that was certainly not taken is tried
 * again with growing delays.
 */
export function startNotices(context: CloudContext, senders: Senders): Cancel {
  return everyInBackground(context, PERIOD_MS, 'notices', () => deliverNotices(context, senders))
}

export async function deliverNotices(context: CloudContext, senders: Senders): Promise<void> {
  const due = await context.db.kysely
    .selectFrom('notifications')
    .select('id')
    .where('state', '=', 'pending')
    .where('due_at', '<=', context.runtime.clock.now())
    .orderBy('due_at')
    .limit(BATCH)
    .execute()
  for (const { id } of due)
    await isolated(context, `notice ${id}`, async () => {
      const notice = await claim(context, id)
      if (notice) await deliver(context, senders, notice)
    })
}

type NoticeRow = Selectable<Tables['notifications']>

function claim({ db, runtime }: CloudContext, id: number): Promise<NoticeRow | undefined> {
  return db.kysely
    .updateTable('notifications')
    .set((eb) => ({ state: 'sending', attempts: eb('attempts', '+', 1), updated_at: runtime.clock.now() }))
    .where('id', '=', id)
    .where('state', '=', 'pending')
    .returningAll()
    .executeTakeFirst()
}

async function deliver(context: CloudContext, senders: Senders, notice: NoticeRow): Promise<void> {
  const { db, runtime, checkpoint } = context
  const target = await targetOf(context, notice)
  const kind = noticeKinds.find((one) => one === notice.kind)!
  checkpoint('notice.before-send')
  let result: SendResult | 'unknown'
  try {
    result = target
      ? await senders[target.device?.platform ?? 'none'].send(
          target.device,
          messageOf(kind, target.hubName),
          {
            orderId: notice.order_id,
            kind,
          },
        )
      : 'gone'
  } catch (error) {
    await record('unknown')
    throw error
  }
  checkpoint('notice.after-send')
  await record(result)

  async function record(outcome: SendResult | 'unknown'): Promise<void> {
    const now = runtime.clock.now()
    const again = outcome === 'later' && notice.attempts < MAX_ATTEMPTS
    await db.transact(async ({ q }) => {
      await q
        .updateTable('notifications')
        .set({
          state: again ? 'pending' : outcome === 'sent' ? 'sent' : 'failed',
          error: outcome === 'sent' ? null : outcome,
          due_at: now + FIRST_RETRY_MS * 2 ** (notice.attempts - 1),
          updated_at: now,
        })
        .where('id', '=', notice.id)
        .execute()
      if (outcome === 'gone' && notice.push_config_id !== 0)
        await q.deleteFrom('push_configs').where('id', '=', notice.push_config_id).execute()
    })
  }
}

/** Undefined where the device has been removed meanwhile. */
async function targetOf(
  { db }: CloudContext,
  notice: NoticeRow,
): Promise<{ device: Device | null; hubName: string } | undefined> {
  const order = await db.kysely
    .selectFrom('orders as o')
    .innerJoin('hubs as h', 'h.id', 'o.hub_id')
    .select('h.name')
    .where('o.id', '=', notice.order_id)
    .executeTakeFirst()
  if (!order) return undefined
  if (notice.push_config_id === 0) return { device: null, hubName: order.name }
  const config = await db.kysely
    .selectFrom('push_configs')
    .select(['platform', 'push_token'])
    .where('id', '=', notice.push_config_id)
    .executeTakeFirst()
  if (!config) return undefined
  const device = { platform: config.platform, token: config.push_token }
  return { device, hubName: order.name }
}
