import { isAsBadAs } from '../../protocol/model/alarms.ts'
import type { Alarm } from '../../protocol/contract/owner-alarms.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'
import { scheduleAlong } from '../platform/work/queue.ts'

/** The due work of one contact, by its id. One mail contains all news for the contact. */
export const MAIL_WORK = 'alarm.mail'

/**
 * Schedules the mails about alarms, in the transaction that publishes their events: the beginning and the end of an
 * incident.
 */
export async function planMails(
  tx: Tx,
  { runtime, settings }: CloudContext,
  events: readonly { seq: number; type: string; owner_id: number }[],
): Promise<void> {
  const reported = events.filter(({ type }) => type === 'alarm.raised' || type === 'alarm.cleared')
  if (reported.length === 0) return
  // As for webhooks: a contact that is deleted at this moment must not block others.
  const contacts = await tx
    .forKeyShare(
      tx.q
        .selectFrom('alarm_contacts')
        .select(['id', 'owner_id', 'severity'])
        .where('owner_id', 'in', [...new Set(reported.map(({ owner_id }) => owner_id))])
        .where('confirmed_at', 'is not', null)
        .orderBy('id'),
    )
    .execute()
  if (contacts.length === 0) return
  const rows = await tx.q
    .selectFrom('events')
    .select(['seq', 'data'])
    .where(
      'seq',
      'in',
      reported.map(({ seq }) => seq),
    )
    .execute()
  const severities = new Map(rows.map(({ seq, data }) => [seq, (JSON.parse(data) as Alarm).severity]))
  const dueAt = runtime.clock.now() + settings.mailGatherMs
  for (const contact of contacts) {
    const mails = reported
      .filter(
        ({ owner_id, seq }) =>
          owner_id === contact.owner_id && isAsBadAs(severities.get(seq)!, contact.severity),
      )
      .map(({ seq }) => ({ contact_id: contact.id, event_seq: seq, mail_id: null }))
    if (mails.length === 0) continue
    await tx.q.insertInto('alarm_mails').values(mails).execute()
    // A mail that already waits includes these alarms and is not delayed by them.
    await scheduleAlong(tx, MAIL_WORK, contact.id, dueAt)
  }
}
