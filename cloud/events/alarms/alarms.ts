import type { Selectable } from 'kysely'
import type { Alarm } from '../../../protocol/contract/owner-alarms.ts'
import { alarmKinds, alarmMessage, type AlarmKindName } from '../../../protocol/model/alarms.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { timestamp, timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { schedule, unschedule } from '../../platform/work/queue.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { appendEvent } from '../append-event.ts'
import { hasPlace } from './alarm-places.ts'
import type { AboutHub, WithOwner } from './about-sales.ts'
import { subjectName } from './subject-name.ts'

/**
 * Alarms report problems that the service cannot resolve to people. There is one for each incident. Call `raiseAlarm`
 * in the transaction that detects the problem, as often as it is detected, and `clearAlarm` when the problem is gone.
 * The alarm of a problem that comes and goes ends after the problem has been gone for a while. If an incident returns
 * soon after its alarm ended, the same alarm opens again with a higher count, and then ends later. Events report
 * alarms, and mails and webhooks report events. A hub has a limited number of open alarms, without those about sales.
 */

type AlarmRow = Selectable<Tables['alarms']>

/** The place of an incident: a hub, or an owner. */
export type Whereabouts = { hubId: number } | { ownerId: number }

/** An alarm that concerns the service is raised for every owner. */
export async function everyOwner(tx: Tx): Promise<{ ownerId: number }[]> {
  const owners = await tx.q.selectFrom('owners').select('id').orderBy('id').execute()
  return owners.map(({ id }) => ({ ownerId: id }))
}

/** Identifies an incident. */
export type Incident<Kind extends AlarmKindName = AlarmKindName> = Whereabouts & {
  kind: Kind
  /** The name of the incident within its kind and place; by default its subject. */
  incident?: string
  /** `row 2/1/4`; null: the hub as a whole. */
  subject: string | null
}

export type Raised = WithOwner & Problem
type Problem = Incident & {
  /** The text of the problem, if it differs from the text of its kind. */
  what?: string | undefined
  /** Appended to the message, in brackets. */
  detail?: string
  details?: Record<string, unknown>
  /** When the problem began, if it was earlier than now. */
  since?: number
  /** If the alarm is already open, its message and details are replaced. */
  refreshes?: true
  /** A schedule repeats this report of one event. After a person has acknowledged its alarm it is not raised again. */
  isRepeated?: true
  /** The owner at the sale. A retired hub that has not left for another cell keeps its owner here. */
  soldBy?: number
}

/** The due work of an alarm that changes with time, by its id. */
export const WORK = 'alarm'

/** Only the alarm of a silent hub becomes worse with time. */
export const worsens = ({ kind, severity }: Pick<AlarmRow, 'kind' | 'severity'>): boolean =>
  kind === 'hub_silent' && severity === 'warning'

/** Reports that a problem exists. Notifies people if that is new. */
export async function raiseAlarm(tx: Tx, context: CloudContext, raised: Raised): Promise<void> {
  const key = keyOf(raised)
  const now = context.runtime.clock.now()
  const last = await latest(tx, key)
  const { kind, subject, detail = '', details = {}, since = now } = raised
  const open = last?.cleared_at === null ? last : undefined
  if (open && !raised.refreshes) return hold(tx, context, open)
  const about =
    subject !== null && 'hubId' in raised ? await subjectName(tx.q, raised.hubId, subject) : subject
  const message = alarmMessage(kind, about ?? '', detail, raised.what)
  if (open) {
    await refresh(tx, open, { message, details: JSON.stringify(details) })
    return hold(tx, context, open)
  }
  const owner = await ownerOf(tx, raised)
  if (owner === undefined) return
  if (raised.isRepeated && last?.owner_id === owner && hasEndedAcknowledged(last)) return
  if ('hubId' in raised && !(await hasPlace(tx, context, raised))) return
  // A former owner's alarm does not open again under another owner.
  const isBack =
    last !== undefined && last.owner_id === owner && last.cleared_at! > now - context.settings.alarmFlapMs
  const row = isBack
    ? await reopen(tx, last, { message, details: JSON.stringify(details) })
    : await tx.q
        .insertInto('alarms')
        .values({
          id: `alm_${uuidv7(context.runtime)}`,
          owner_id: owner,
          hub_id: 'hubId' in raised ? raised.hubId : null,
          kind,
          incident: incidentOf(raised),
          key,
          subject,
          severity: alarmKinds[kind].severity,
          message,
          details: JSON.stringify(details),
          raised_at: Math.min(now, Math.round(since)),
          count: 1,
          quiet_since: null,
          is_flapping: 0,
          cleared_at: null,
          acknowledged_at: null,
          acknowledged_by: null,
        })
        // Two processes may detect the same problem.
        .onConflict((conflict) => conflict.doNothing())
        .returningAll()
        .executeTakeFirst()
  if (!row) return
  context.log.warn({ hubId: row.hub_id, kind, subject, message: row.message, details }, 'alarm')
  publishAlarm(tx, context, row, 'alarm.raised')
  if (worsens(row)) await schedule(tx, WORK, row.id, row.raised_at + context.settings.hubSilentCriticalMs)
}

/** Updates an open alarm to the present state. People are not notified again. */
async function refresh(tx: Tx, row: AlarmRow, text: Pick<AlarmRow, 'message' | 'details'>): Promise<void> {
  if (row.message === text.message && row.details === text.details) return
  await tx.q.updateTable('alarms').set(text).where('id', '=', row.id).execute()
}

/** A reported problem still exists, or returned before its alarm ended: people already know. */
async function hold(tx: Tx, context: CloudContext, row: AlarmRow): Promise<void> {
  if (row.quiet_since === null) return
  await tx.q
    .updateTable('alarms')
    .set((eb) => ({ quiet_since: null, count: eb('count', '+', 1) }))
    .where('id', '=', row.id)
    .execute()
  if (worsens(row)) await schedule(tx, WORK, row.id, row.raised_at + context.settings.hubSilentCriticalMs)
  else await unschedule(tx, WORK, row.id)
}

/** A person has ended the alarm, rather than acknowledged an ended one. */
const hasEndedAcknowledged = ({ acknowledged_at, cleared_at }: AlarmRow): boolean =>
  acknowledged_at !== null && cleared_at !== null && acknowledged_at <= cleared_at

/** As severe as at first: an alarm that is already due to become worse does so at once. */
const reopen = (tx: Tx, { id, kind }: AlarmRow, text: Pick<AlarmRow, 'message' | 'details'>) =>
  tx.q
    .updateTable('alarms')
    .set((eb) => ({
      ...text,
      severity: alarmKinds[kind].severity,
      cleared_at: null,
      quiet_since: null,
      is_flapping: 1,
      count: eb('count', '+', 1),
      acknowledged_at: null,
      acknowledged_by: null,
    }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()

/** The newest alarm of an incident, open or ended, under its lock. */
export async function latestAlarm(
  tx: Tx,
  incident: Incident,
): Promise<{ id: string; endedAt: number | null; details: Record<string, unknown> } | undefined> {
  const row = await latest(tx, keyOf(incident))
  return (
    row && {
      id: row.id,
      endedAt: row.cleared_at,
      details: JSON.parse(row.details) as Record<string, unknown>,
    }
  )
}

/** Replaces the details of an alarm when more is known about its incident. People are not notified again. */
export async function amendAlarm(tx: Tx, id: string, details: Record<string, unknown>): Promise<void> {
  await tx.q
    .updateTable('alarms')
    .set({ details: JSON.stringify(details) })
    .where('id', '=', id)
    .execute()
}

/** Reports that a problem is gone, or never existed. */
export async function clearAlarm(tx: Tx, context: CloudContext, incident: Incident): Promise<void> {
  const row = await latest(tx, keyOf(incident))
  if (row?.cleared_at === null) await fade(tx, context, row)
}

/** The problem of an open alarm is gone. */
async function fade(tx: Tx, context: CloudContext, row: AlarmRow): Promise<void> {
  if (row.quiet_since !== null) return
  const afterMs = quietMs(context, row)
  if (afterMs === 0) return end(tx, context, row)
  const now = context.runtime.clock.now()
  await tx.q.updateTable('alarms').set({ quiet_since: now }).where('id', '=', row.id).execute()
  if (afterMs !== undefined) await schedule(tx, WORK, row.id, now + afterMs)
}

/** How often an incident that a person has settled may return at once before it counts as flapping. */
const SETTLED_TIMES = 2

/** How long an incident must be gone before its alarm ends; undefined: a person ends it. */
function quietMs({ settings }: CloudContext, { kind, is_flapping, count }: AlarmRow): number | undefined {
  switch (alarmKinds[kind].ends) {
    case 'at_once':
    case 'at_once_or_acknowledged':
      return count > SETTLED_TIMES ? settings.alarmFlapMs : 0
    case 'when_quiet':
      return is_flapping === 1 ? settings.alarmFlapMs : settings.alarmClearMs
    case 'when_long_quiet':
      return settings.alarmFlapMs
    case 'when_acknowledged':
      return undefined
  }
}

export async function end(tx: Tx, context: CloudContext, { id }: AlarmRow): Promise<void> {
  const now = context.runtime.clock.now()
  const row = await tx.q
    .updateTable('alarms')
    .set({ cleared_at: now, quiet_since: null })
    .where('id', '=', id)
    .where('cleared_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
  await unschedule(tx, WORK, id)
  if (row) publishAlarm(tx, context, row, 'alarm.cleared')
}

/** An open problem, for kinds with a complete list for each hub. */
export interface OpenProblem {
  subject: string | null
  /** By default the subject. */
  incident?: string
  what?: string | undefined
  detail?: string
  details?: Record<string, unknown>
  since?: number
}

/** Sets the alarms of a kind at a hub to the present problems. `among`: affects only incidents with this prefix. */
export async function reconcileAlarms(
  tx: Tx,
  context: CloudContext,
  { hubId, kind, among = '' }: { hubId: number; kind: AboutHub; among?: string },
  problems: readonly OpenProblem[],
): Promise<void> {
  for (const fact of problems) await raiseAlarm(tx, context, { hubId, kind, ...fact })
  const names = new Set(problems.map(incidentOf))
  const open = await tx.q
    .selectFrom('alarms')
    .selectAll()
    .where('hub_id', '=', hubId)
    .where('kind', '=', kind)
    .where('cleared_at', 'is', null)
    .execute()
  for (const row of open)
    if (row.incident.startsWith(among) && !names.has(row.incident)) await fade(tx, context, row)
}

/** A person acknowledges an alarm. This ends an alarm with a problem that may last. A second call changes nothing. */
export async function acknowledgeAlarm(
  tx: Tx,
  context: CloudContext,
  id: string,
  by: string,
): Promise<AlarmRow | undefined> {
  const news = await tx.q
    .updateTable('alarms')
    .set({ acknowledged_at: context.runtime.clock.now(), acknowledged_by: by })
    .where('id', '=', id)
    .where('acknowledged_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
  if (news) publishAlarm(tx, context, news, 'alarm.acknowledged')
  if (news?.cleared_at === null && endsAcknowledged(news.kind)) await end(tx, context, news)
  return tx.q.selectFrom('alarms').selectAll().where('id', '=', id).executeTakeFirst()
}

const endsAcknowledged = (kind: AlarmKindName): boolean =>
  alarmKinds[kind].ends === 'when_acknowledged' || alarmKinds[kind].ends === 'at_once_or_acknowledged'

/** The effects of time on alarms. */
export const alarmWork = (context: CloudContext): WorkKinds => ({
  [WORK]: { run: ({ subject }) => applyTime(context, subject) },
})

function applyTime(context: CloudContext, id: string): Promise<Outcome> {
  return context.db.transact(async (tx) => {
    const row = await tx
      .forUpdate(tx.q.selectFrom('alarms').selectAll().where('id', '=', id))
      .executeTakeFirst()
    if (!row || row.cleared_at !== null) return done
    const now = context.runtime.clock.now()
    if (row.quiet_since !== null) {
      const afterMs = quietMs(context, row)
      if (afterMs === undefined) return done
      const endsAt = row.quiet_since + afterMs
      if (endsAt > now) return { next: endsAt }
      await end(tx, context, row)
      return done
    }
    if (!worsens(row)) return done
    const worseAt = row.raised_at + context.settings.hubSilentCriticalMs
    if (worseAt > now) return { next: worseAt }
    const worse = await tx.q
      .updateTable('alarms')
      .set({ severity: 'critical' })
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirstOrThrow()
    // Notifies the contacts that want only critical alarms (`isNews`).
    publishAlarm(tx, context, worse, 'alarm.raised')
    return done
  })
}

export function publishAlarm(
  tx: Tx,
  context: CloudContext,
  row: AlarmRow,
  type: 'alarm.raised' | 'alarm.cleared' | 'alarm.acknowledged',
): void {
  appendEvent(tx, context, { type, hubId: row.hub_id, ownerId: row.owner_id, data: viewAlarm(row) })
}

export const viewAlarm = (row: AlarmRow): Alarm => ({
  id: row.id,
  hub_id: row.hub_id,
  kind: row.kind,
  severity: row.severity,
  subject: row.subject,
  message: row.message,
  remedy: alarmKinds[row.kind].remedy,
  raised_at: timestamp(row.raised_at),
  count: row.count,
  cleared_at: timestampOrNull(row.cleared_at),
  acknowledged_at: timestampOrNull(row.acknowledged_at),
  acknowledged_by: row.acknowledged_by,
  details: JSON.parse(row.details) as Record<string, unknown>,
})

const incidentOf = ({ incident, subject }: Pick<OpenProblem, 'incident' | 'subject'>): string =>
  incident ?? subject ?? ''

/** Ids are numbers, so a space ends them. */
const keyOf = (of: Incident): string =>
  `${'hubId' in of ? `hub ${of.hubId}` : `owner ${of.ownerId}`} ${of.kind} ${incidentOf(of)}`

/** The owner of the alarm; undefined if there is none: a retired hub has only alarms about its sales and its move. */
async function ownerOf(tx: Tx, raised: Problem): Promise<number | undefined> {
  if ('ownerId' in raised) return raised.ownerId
  if (raised.soldBy !== undefined) return raised.soldBy
  const hub = await tx.q
    .selectFrom('hubs')
    .select(['owner_id', 'retired_at'])
    .where('id', '=', raised.hubId)
    .executeTakeFirst()
  return hub?.retired_at === null ? hub.owner_id : undefined
}

/** Under its lock, so that a transaction that raises it and one that clears it wait for each other. */
const latest = (tx: Tx, key: string): Promise<AlarmRow | undefined> =>
  tx
    .forUpdate(tx.q.selectFrom('alarms').selectAll().where('key', '=', key).orderBy('seq', 'desc').limit(1))
    .executeTakeFirst()
