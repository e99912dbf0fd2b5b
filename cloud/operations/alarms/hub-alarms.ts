import { textsIn } from '../../platform/store/recordset.ts'
import { z } from 'zod'
import {
  alarmKinds,
  hubAlarmCodes,
  incidentOfCode,
  kindOfCode,
  whatOfCode,
  type AlarmKindName,
  type HubAlarmCode,
} from '../../../protocol/model/alarms.ts'
import {
  binSubject,
  cabinetSubject,
  deviceSubject,
  doorSubject,
  fridgeSubject,
  HUB_SUBJECT,
  rowSubject,
} from '../../../protocol/model/subject.ts'
import { storageSentence, storageText, type StorageFault } from '../../../protocol/model/storage.ts'
import type { AlarmEntry, SnapshotEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { AboutHub } from '../../events/alarms/about-sales.ts'
import {
  clearAlarm,
  raiseAlarm,
  reconcileAlarms,
  type Incident,
  type Raised,
  type OpenProblem,
} from '../../events/alarms/alarms.ts'
import { deriveOfHub } from '../../events/derive-of-hub.ts'
import { doorsOf, readFridges, readRows } from '../../commerce/catalogue/layout.ts'
import { noteRestored, type LostOrder } from '../../commerce/orders/restored.ts'
import type { VerifiedCertificate } from '../../gateway/lost-certificates.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'

/** Alarms about hubs, from the hubs' own reports and from the cloud's findings. */

/** Applies the alarms that a hub has raised and cleared, in its order. */
export async function applyAlarmEntries(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  entries: readonly AlarmEntry[],
): Promise<void> {
  const isThere = await subjectsOf(tx, hubId, entries)
  const unknown = entries.filter(({ raised, subject }) => raised && !isThere(subject))
  logUnknown(context, hubId, unknown)
  for (const { code, subject, raised, detail, at } of entries) {
    const incident = { hubId, ...incidentOf(code, subject) }
    if (!raised) await clearAlarm(tx, context, incident)
    else if (isThere(subject))
      await raiseAlarm(tx, context, { ...incident, detail, details: { detail }, since: at })
  }
}

/** A hub's report about a part that it does not have raises no alarm. */
function logUnknown(
  { log }: CloudContext,
  hubId: number,
  unknown: readonly { code: string; subject: string }[],
): void {
  const [first] = unknown
  if (first)
    log.warn(
      { hubId, code: first.code, subject: first.subject, count: unknown.length },
      'alarms of a hub are ignored: their subjects are not in its layout',
    )
}

/** A hub's snapshot contains all of its open alarms. Any other alarm was cleared, and that report is lost. */
export async function applySnapshotAlarms(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  { alarms }: SnapshotEntry,
): Promise<void> {
  const isThere = await subjectsOf(tx, hubId, alarms)
  logUnknown(
    context,
    hubId,
    alarms.filter(({ subject }) => !isThere(subject)),
  )
  const known = alarms.filter((alarm): alarm is typeof alarm & { code: HubAlarmCode } =>
    hubAlarmCodes.some((code) => code === alarm.code),
  )
  if (known.length < alarms.length)
    context.log.warn({ hubId, alarms }, 'a hub has alarms that are not known here')
  for (const code of hubAlarmCodes) {
    const kind = kindOfCode(code)
    const problems = known
      .filter((alarm) => alarm.code === code && isThere(alarm.subject))
      .map(({ subject, detail, since }) => ({
        ...incidentOf(code, subject),
        detail,
        details: { detail },
        since,
      }))
    if (isForPeople(kind)) for (const fact of problems) await raiseAlarm(tx, context, { hubId, ...fact })
    else await reconcileAlarms(tx, context, { hubId, kind, among: incidentOfCode(code, '') }, problems)
  }
}

/**
 * Whether a subject is a part of the hub, by its layout in the cloud. Only the hub itself names its
 * controllers.
 */
async function subjectsOf(
  tx: Tx,
  hubId: number,
  about: readonly unknown[],
): Promise<(subject: string) => boolean> {
  if (about.length === 0) return () => true
  const rows = await readRows(tx.q, hubId)
  const fridges = await readFridges(tx.q, hubId)
  const bins = await tx.q.selectFrom('hub_bins').select('bin').where('hub_id', '=', hubId).execute()
  const states = await tx.q
    .selectFrom('hub_fridge_states')
    .select('fridge')
    .where('hub_id', '=', hubId)
    .execute()
  const there = new Set([
    HUB_SUBJECT,
    ...rows.flatMap((row) => [rowSubject(row), cabinetSubject(row.cabinet)]),
    ...fridges.map(({ fridge }) => fridgeSubject(fridge)),
    ...states.map(({ fridge }) => fridgeSubject(fridge)),
    ...bins.map(({ bin }) => binSubject(bin)),
    ...doorsOf(fridges).map(doorSubject),
  ])
  return (subject) => there.has(subject) || NAMED_BY_HUB.test(subject)
}

const NAMED_BY_HUB = /^(controller [a-z][a-z0-9-]{0,30}|(version|settings|certificate) [\w.+:-]{1,50})$/

/** The alarm is over for the hub at once, but stays open until a person acknowledges it. */
const isForPeople = (kind: AlarmKindName): boolean => alarmKinds[kind].ends === 'when_acknowledged'

const incidentOf = (
  code: HubAlarmCode,
  subject: string,
): Omit<Incident<AboutHub>, 'hubId' | 'ownerId'> & Pick<Raised, 'what'> => ({
  what: whatOfCode(code),
  kind: kindOfCode(code),
  incident: incidentOfCode(code, subject),
  subject: subject === HUB_SUBJECT ? null : subject,
})

/** Raises or clears the alarms for a hub's unconfirmed operations. */
export function alarmUnknownOperations(tx: Tx, context: CloudContext, hubId: number): void {
  deriveOfHub(tx, hubId, 'unknown operations', async () => {
    const rows = await tx.q
      .selectFrom('unknown_operations')
      .selectAll()
      .where('hub_id', '=', hubId)
      .where('settled_at', 'is', null)
      .orderBy('at')
      .execute()
    const problems = rows.map(
      ({ operation_id, device, action, reason, cabinet, shelf, row, order_id, at }): OpenProblem => ({
        incident: `operation ${operation_id}`,
        subject:
          cabinet === null || shelf === null || row === null
            ? deviceSubject(device)
            : rowSubject({ cabinet, shelf, row }),
        detail: `${action}: ${reason}`,
        details: { operation_id, device, action, reason, order_id },
        since: at,
      }),
    )
    const among = { hubId, kind: 'unknown_operation', among: 'operation ' } as const
    return () => reconcileAlarms(tx, context, among, problems)
  })
}

/**
 * Raises or clears the alarm for a hub's entries that could not be applied: one alarm for any number of
 * entries.
 */
export function deadLettersChanged(tx: Tx, context: CloudContext, hubId: number): void {
  deriveOfHub(tx, hubId, 'dead letters', async () => {
    const newest = await tx.q
      .selectFrom('dead_letters')
      .select(['id', 'error'])
      .where('hub_id', '=', hubId)
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirst()
    const incident = { hubId, kind: 'dead_letter', subject: null } as const
    if (!newest) return () => clearAlarm(tx, context, incident)
    const lost = await lostOrders(tx, hubId)
    const { id: dead_letter_id, error } = newest
    const details = { dead_letter_id, error }
    return async () => {
      if (lost.length > 0) await noteRestored(tx, context, lost)
      await raiseAlarm(tx, context, { ...incident, detail: error.slice(0, 200), details })
    }
  })
}

const LostReport = z.object({
  kind: z.templateLiteral(['order.', z.string()]),
  order_id: z.uuid(),
  number: z.int().optional(),
})

/**
 * Number of the newest dead letters that are read per hub: a defective or stolen hub produces them without
 * end.
 */
const LETTERS_READ = 1000

/** Orders that a hub reports and that the database does not have. */
async function lostOrders(tx: Tx, hubId: number): Promise<LostOrder[]> {
  const letters = await tx.q
    .selectFrom('dead_letters')
    .select('body')
    .where('hub_id', '=', hubId)
    .where('stream', '=', 'ledger')
    .where('body', 'like', '%"order.%')
    .orderBy('id', 'desc')
    .limit(LETTERS_READ)
    .execute()
  const reports = letters.flatMap(({ body }) => LostReport.safeParse(JSON.parse(body)).data ?? [])
  if (reports.length === 0) return []
  const uuids = [...new Set(reports.map(({ order_id }) => order_id))]
  const known = await tx.q
    .selectFrom('orders')
    .select('uuid')
    .where('uuid', 'in', textsIn(tx.q, uuids))
    .execute()
  const here = new Set(known.map(({ uuid }) => uuid))
  return uuids
    .filter((uuid) => !here.has(uuid))
    .map((uuid) => ({
      order_uuid: uuid,
      order_id:
        reports.find((report) => report.order_id === uuid && report.number !== undefined)?.number ?? null,
      hub_id: hubId,
    }))
}

/** A hub has received entries that this database does not know: the database was restored. */
export const booksAreBehind = (tx: Tx, context: CloudContext): Promise<void> => noteRestored(tx, context, [])

/** The alarm ends when the other board has stayed away for a while: each new connection postpones the end. */
export async function identityConflict(tx: Tx, context: CloudContext, hubId: number): Promise<void> {
  const incident: Incident<'identity_conflict'> = { hubId, kind: 'identity_conflict', subject: null }
  await raiseAlarm(tx, context, incident)
  await clearAlarm(tx, context, incident)
}

/** The database had lost the certificate of a board, which may also be a stolen one. A person must look, and acknowledge it. */
export const certificateAdopted = (
  tx: Tx,
  context: CloudContext,
  { hubId, serial }: Pick<VerifiedCertificate, 'hubId' | 'serial'>,
): Promise<void> =>
  raiseAlarm(tx, context, {
    hubId,
    kind: 'database_restored',
    incident: `certificate ${serial}`,
    subject: null,
    detail: `the certificate of its board was missing: if that board was stolen or replaced, run larder hubs revoke ${hubId}`,
    details: {
      from: null,
      to: timestamp(context.runtime.clock.now()),
      orders: [],
      certificate: serial,
    },
  })

/** A hub reports why it cannot use its storage, or that it can again. */
export async function storageIs(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  fault: StorageFault | undefined,
): Promise<void> {
  const present = fault && storageText(fault.reason).alarm
  for (const kind of storageAlarms) {
    const incident = { hubId, kind, subject: null, incident: 'storage' }
    if (fault !== undefined && kind === present)
      await raiseAlarm(tx, context, { ...incident, detail: storageSentence(fault), details: { ...fault } })
    else await clearAlarm(tx, context, incident)
  }
}

const storageAlarms = ['store_full', 'storage_failed', 'foreign_journal'] as const

/** A hub has been silent for a long time. */
export async function hubIsSilent(
  tx: Tx,
  context: CloudContext,
  hub: { id: number; name: string },
  since: number,
): Promise<void> {
  await raiseAlarm(tx, context, {
    hubId: hub.id,
    kind: 'hub_silent',
    subject: null,
    detail: `${hub.name}, last contact ${timestamp(since)}`,
    details: { hub_name: hub.name, last_heard_at: timestamp(since) },
    since,
  })
}

/** Hubs report again, or for the first time. */
export async function hubsHaveReported(
  tx: Tx,
  context: CloudContext,
  hubIds: readonly number[],
): Promise<void> {
  const silent = await tx.q
    .selectFrom('alarms')
    .select('hub_id')
    .where('hub_id', 'in', hubIds)
    .where('kind', '=', 'hub_silent')
    .where('cleared_at', 'is', null)
    .execute()
  for (const { hub_id: hubId } of silent)
    await clearAlarm(tx, context, { hubId: hubId!, kind: 'hub_silent', subject: null })
}
