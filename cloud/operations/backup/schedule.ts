import { DAY_MS } from '../../../protocol/model/times.ts'
import { clearAlarm, everyOwner, raiseAlarm } from '../../events/alarms/alarms.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { WorkKinds } from '../../platform/work/runner.ts'
import type { BackupTarget } from './target.ts'

export interface BackupSchedule {
  /** `HH:MM` in UTC. */
  daily: string
  /** Makes a backup, which the audit log records as `backup.create`. */
  create(): Promise<void>
  target: BackupTarget
}

const HOUR_MS = 3_600_000
/** Time without a backup that raises `backup_overdue`. */
const OVERDUE_MS = 36 * HOUR_MS

/** Due work: one backup a day, whichever process is running. A missed one is made at the next start. */
export const backupWork = (context: CloudContext, schedule: BackupSchedule | undefined): WorkKinds => ({
  backup: { recurring: ['all'], run: () => backUp(context, schedule) },
})

async function backUp(context: CloudContext, schedule: BackupSchedule | undefined) {
  const { db, runtime } = context
  const now = runtime.clock.now()
  if (!schedule) {
    await reportBackups(context, now)
    return { next: now + DAY_MS }
  }
  const slot = latestSlot(schedule.daily, now)
  let failure: unknown
  if (((await lastBackup(context)) ?? 0) < slot)
    try {
      await schedule.create()
      const listed = (await schedule.target.list()).filter(({ scheduled }) => scheduled)
      const kept = keptOf(listed.map(({ created_at }) => Date.parse(created_at)))
      for (const { name, created_at } of listed)
        if (!kept.has(Date.parse(created_at))) await schedule.target.remove(name)
    } catch (error) {
      failure = error
    }
  const { since } = await db.kysely
    .selectFrom('owners')
    .select((eb) => eb.fn.min('created_at').as('since'))
    .executeTakeFirstOrThrow()
  await reportBackups(context, (await lastBackup(context)) ?? since ?? now)
  return { next: slot + DAY_MS, ...(failure !== undefined && { failure }) }
}

/** When the newest backup was made, whoever made it. A restored database does not know the backup that it came from. */
async function lastBackup({ db }: CloudContext): Promise<number | undefined> {
  const row = await db.kysely
    .selectFrom('audit_log')
    .select('at')
    .where('action', '=', 'backup.create')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.at
}

/** The latest time of day `HH:MM` that is not in the future. */
export function latestSlot(daily: string, now: number): number {
  const [hours = 0, minutes = 0] = daily.split(':').map(Number)
  const today = Math.floor(now / DAY_MS) * DAY_MS + (hours * 60 + minutes) * 60_000
  return today <= now ? today : today - DAY_MS
}

/** Raises `backup_overdue` for every owner while the last backup is too old. */
export function reportBackups(context: CloudContext, lastAt: number): Promise<void> {
  const isLate = lastAt < context.runtime.clock.now() - OVERDUE_MS
  return context.db.transact(async (tx) => {
    for (const owner of await everyOwner(tx)) {
      const incident = { ...owner, kind: 'backup_overdue', subject: null } as const
      if (isLate) await raiseAlarm(tx, context, { ...incident, details: { last_backup: timestamp(lastAt) } })
      else await clearAlarm(tx, context, incident)
    }
  })
}

/** Periods, each by its number of kept backups: the newest backup of each of the latest 7 days, 4 weeks and 12 months. */
const periods: readonly [count: number, periodOf: (at: Date) => string][] = [
  [7, (at) => at.toISOString().slice(0, 10)],
  // Weeks begin on Monday; 1970-01-01 was a Thursday.
  [4, (at) => String(Math.floor((at.getTime() / DAY_MS + 3) / 7))],
  [12, (at) => at.toISOString().slice(0, 7)],
]

/** The times of the backups that are kept, of all times (milliseconds since the Unix epoch). */
export function keptOf(times: readonly number[]): Set<number> {
  const newestFirst = times.toSorted((a, b) => b - a)
  const kept = new Set<number>()
  for (const [count, periodOf] of periods) {
    const seen = new Set<string>()
    for (const time of newestFirst) {
      const period = periodOf(new Date(time))
      if (seen.has(period)) continue
      if (seen.size === count) break
      seen.add(period)
      kept.add(time)
    }
  }
  return kept
}
