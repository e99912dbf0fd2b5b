import {
  clearAlarm,
  everyOwner,
  raiseAlarm,
  type Incident,
  type Whereabouts,
} from '../../events/alarms/alarms.ts'
import { MAIL_WORK } from '../../events/publish.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { recurring, type WorkKinds, type WorkObserver } from '../../platform/work/runner.ts'

/**
 * Raises an alarm if due work fails repeatedly, for the owner concerned; for every owner if it is the
 * service's own work.
 */
export function workObserver(context: CloudContext): WorkObserver {
  const incidentsOf = async (
    tx: Tx,
    kind: string,
    subject: string,
  ): Promise<Incident<'work_exhausted'>[]> => {
    const about = {
      kind: 'work_exhausted',
      incident: `${kind} ${subject}`,
      subject: `${kind} ${subject}`,
    } as const
    const place = await placeOf(tx, kind, subject)
    const places = place === undefined ? await everyOwner(tx) : [place]
    return places.map((each) => ({ ...each, ...about }))
  }
  return {
    failing: ({ kind, subject, attempts }, error) =>
      context.db.transact(async (tx) => {
        for (const incident of await incidentsOf(tx, kind, subject))
          await raiseAlarm(tx, context, {
            ...incident,
            detail: error.slice(0, 200),
            details: { kind, subject, attempts, error },
          })
      }),
    recovered: ({ kind, subject }) =>
      context.db.transact(async (tx) => {
        for (const incident of await incidentsOf(tx, kind, subject)) await clearAlarm(tx, context, incident)
      }),
  }
}

const CHECK_MS = 5 * 60_000

/**
 * Clears alarms of work that will not run again in that form: its subject was resolved otherwise, or the work
 * was scheduled again.
 */
export const workAlarmWork = (context: CloudContext): WorkKinds => ({
  'alarm.work': recurring(context, CHECK_MS, () =>
    context.db.transact(async (tx) => {
      const open = await tx.q
        .selectFrom('alarms')
        .select(['owner_id', 'hub_id', 'incident', 'subject', 'details'])
        .where('kind', '=', 'work_exhausted')
        .where('cleared_at', 'is', null)
        .execute()
      for (const { owner_id: ownerId, hub_id: hubId, details, ...about } of open) {
        const { kind, subject } = JSON.parse(details) as { kind: string; subject: string }
        const failing = await tx.q
          .selectFrom('due_work')
          .select('kind')
          .where((eb) => eb.and({ kind, subject }))
          .where('attempts', '>', 0)
          .where('last_error', 'is not', null)
          .executeTakeFirst()
        const place = hubId === null ? { ownerId } : { hubId }
        if (!failing) await clearAlarm(tx, context, { ...place, ...about, kind: 'work_exhausted' })
      }
    }),
  ),
})

type Find = (tx: Tx, subject: string, kind: string) => Promise<Whereabouts | undefined>

const ofHub: Find = (_tx, subject) => Promise.resolve({ hubId: Number(subject) })

const ofOrder: Find = async (tx, id) => {
  const order = await tx.q
    .selectFrom('orders')
    .select('hub_id')
    .where('id', '=', Number(id))
    .executeTakeFirst()
  return order && { hubId: order.hub_id }
}

/** For a row that names its order. */
const ofRow =
  (table: 'payments' | 'refunds' | 'notifications'): Find =>
  async (tx, id, kind) => {
    const row = await tx.q
      .selectFrom(table)
      .select('order_id')
      .where('id', '=', Number(id))
      .executeTakeFirst()
    return row && ofOrder(tx, String(row.order_id), kind)
  }

/**
 * The owner concerned by a piece of work, by its kind or the first part of it. Failures of one owner's
 * receiver are not shown to other owners.
 */
const finders: Readonly<Record<string, Find>> = {
  hub: ofHub,
  // `HUB DAY CONTACT`
  'morning.mail': (tx, subject, kind) => ofHub(tx, subject.split(' ')[0]!, kind),
  'sales.rebuild': ofHub,
  'bestsellers.hub': ofHub,
  order: ofOrder,
  notice: ofOrder,
  'money/payment': ofRow('payments'),
  'money/refund': ofRow('refunds'),
  async 'money/orphan'(tx, id) {
    const row = await tx.q
      .selectFrom('orphaned_payments')
      .select('hub_id')
      .where('id', '=', Number(id))
      .executeTakeFirst()
    return row && row.hub_id !== null ? { hubId: row.hub_id } : undefined
  },
  'refund.external': ofRow('payments'),
  'notice.refunded': ofRow('refunds'),
  'notice.deliver': ofRow('notifications'),
  async [MAIL_WORK](tx, id) {
    const row = await tx.q
      .selectFrom('alarm_contacts')
      .select('owner_id')
      .where('id', '=', Number(id))
      .executeTakeFirst()
    return row && { ownerId: row.owner_id }
  },
  async alarm(tx, id) {
    const row = await tx.q.selectFrom('alarms').select('owner_id').where('id', '=', id).executeTakeFirst()
    return row && { ownerId: row.owner_id }
  },
  async webhook(tx, _delivery, kind) {
    const row = await tx.q
      .selectFrom('webhook_endpoints')
      .select('owner_id')
      .where('id', '=', kind.slice(kind.indexOf('/') + 1))
      .executeTakeFirst()
    return row && { ownerId: row.owner_id }
  },
  diagnosis: (_tx, _id, kind) => Promise.resolve({ hubId: Number(kind.split('/')[1]) }),
  async 'ssh.change'(tx, id) {
    const row = await tx.q
      .selectFrom('management_changes')
      .select('hub_id')
      .where('id', '=', id)
      .executeTakeFirst()
    return row && { hubId: row.hub_id }
  },
}

const placeOf = async (tx: Tx, kind: string, subject: string): Promise<Whereabouts | undefined> =>
  (finders[kind] ?? finders[kind.split(/[./]/)[0]!])?.(tx, subject, kind)
