import { randomHex } from '../../../protocol/model/ids.ts'
import type { CloudContext } from '../context.ts'
import type { Queries, Tx } from '../store/database.ts'
import { textsIn } from '../store/recordset.ts'
import { statement } from '../store/statement.ts'

/**
 * The rows of `due_work`: all deferred work of the cloud (README, due work). The transaction that makes work necessary
 * writes the row. A row contains a subject and a time, not an action: the handler reads the subject's current state.
 */

/** A row that a process has claimed, until its lease ends. */
export interface Claimed {
  kind: string
  subject: string
  /** Consecutive failed runs, plus the current one. */
  attempts: number
  claim: string
}

type Subject = string | number

/** Subjects per statement. SQLite accepts 32,766 values, PostgreSQL 65,535, and a fleet may have more hubs. */
const SUBJECTS_AT_ONCE = 1000

/**
 * Makes one or several subjects due at `dueAt` (milliseconds since the Unix epoch). Waiting work moves to `dueAt`. If a
 * subject's handler is running, the subject runs again afterwards.
 */
export async function schedule(
  tx: Tx,
  kind: string,
  subjects: Subject | readonly Subject[],
  dueAt: number,
): Promise<void> {
  const all = [subjects].flat()
  if (all.length === 0) return
  if (all.length === 1) await scheduleOne(tx.q, { kind, subject: String(all[0]), dueAt })
  else await scheduleAll(tx, kind, all, dueAt)
  tx.workDue(dueAt)
}

const dueAnew = (q: Queries, dueAt: number) =>
  q
    .insertInto('due_work')
    .onConflict((conflict) =>
      conflict.columns(['kind', 'subject']).doUpdateSet({ due_at: dueAt, attempts: 0, claim: null }),
    )

const scheduleOne = statement(
  (q, { kind, subject, dueAt }: { kind: string; subject: string; dueAt: number }) =>
    dueAnew(q, dueAt).values({ ...unclaimed, kind, subject, due_at: dueAt }),
)

async function scheduleAll(tx: Tx, kind: string, all: readonly Subject[], dueAt: number): Promise<void> {
  for (const rows of rowsOf(kind, all, dueAt)) await dueAnew(tx.q, dueAt).values(rows).execute()
}

/** Unclaimed rows of subjects, for one statement after another. */
function* rowsOf(kind: string, subjects: readonly Subject[], dueAt: number) {
  for (let first = 0; first < subjects.length; first += SUBJECTS_AT_ONCE)
    yield subjects
      .slice(first, first + SUBJECTS_AT_ONCE)
      .map((subject) => ({ ...unclaimed, kind, subject: String(subject), due_at: dueAt }))
}

/**
 * Makes a subject due at `dueAt`; waiting work keeps its time. If the subject's handler is running, the subject runs
 * again afterwards, because that run may already have found nothing to do.
 */
export async function scheduleAlong(tx: Tx, kind: string, subject: Subject, dueAt: number): Promise<void> {
  await tx.q
    .insertInto('due_work')
    .values({ ...unclaimed, kind, subject: String(subject), due_at: dueAt })
    .onConflict((conflict) =>
      conflict
        .columns(['kind', 'subject'])
        .doUpdateSet({ due_at: dueAt, claim: null })
        .where('due_work.claim', 'is not', null),
    )
    .execute()
  tx.workDue(dueAt)
}

/** Queues one or several subjects. Queued work keeps its time. */
export async function ensureScheduled(
  q: Queries,
  kind: string,
  subjects: Subject | readonly Subject[],
  dueAt: number,
): Promise<void> {
  for (const rows of rowsOf(kind, [subjects].flat(), dueAt))
    await q
      .insertInto('due_work')
      .values(rows)
      .onConflict((conflict) => conflict.columns(['kind', 'subject']).doNothing())
      .execute()
}

/** Whether a subject waits in the queue, or its handler is running. */
export async function isScheduled(q: Queries, kind: string, subject: Subject): Promise<boolean> {
  const row = await q
    .selectFrom('due_work')
    .select('kind')
    .where('kind', '=', kind)
    .where('subject', '=', String(subject))
    .executeTakeFirst()
  return row !== undefined
}

/** Removes one or several subjects from the queue. Returns false if none was queued. */
export async function unschedule(
  tx: Tx,
  kind: string,
  subjects: Subject | readonly Subject[],
): Promise<boolean> {
  const dropped = await drop(tx.q, { kind, subjects: [subjects].flat().map(String) })
  return dropped.length > 0
}

const drop = statement((q, { kind, subjects }: { kind: string; subjects: readonly string[] }) =>
  q
    .deleteFrom('due_work')
    .where('kind', '=', kind)
    .where('subject', 'in', textsIn(q, subjects))
    .returning('kind'),
)

const unclaimed = { attempts: 0, leased_until: null, claim: null, last_error: null }

/**
 * Claims due work of a kind, longest due first. The lease moves `due_at`: if this process dies, its rows block no other
 * process and are due again when the lease ends.
 */
export function claim(
  { db, runtime }: CloudContext,
  kind: string,
  { batch, leaseMs }: { batch: number; leaseMs: number },
): Promise<Claimed[]> {
  const now = runtime.clock.now()
  const token = randomHex(runtime.random, 8)
  return db.transact(async (tx) => {
    const rows = await dueRows(tx.q, { kind, now, batch })
    if (rows.length === 0) return []
    const subjects = rows.map(({ subject }) => subject)
    await claimRows(tx.q, { kind, subjects, until: now + leaseMs, token })
    return rows.map((row) => ({ ...row, attempts: row.attempts + 1, claim: token }))
  })
}

const dueRows = statement((q, { kind, now, batch }: { kind: string; now: number; batch: number }, locks) => {
  const due = q
    .selectFrom('due_work')
    .select(['kind', 'subject', 'attempts'])
    .where('kind', '=', kind)
    .where('due_at', '<=', now)
    .where((eb) => eb.or([eb('leased_until', 'is', null), eb('leased_until', '<=', now)]))
    .orderBy('due_at')
    .orderBy('subject')
    .limit(batch)
  return locks.kind === 'postgres' ? due.forUpdate().skipLocked() : due
})

const claimRows = statement(
  (q, due: { kind: string; subjects: readonly string[]; until: number; token: string }) =>
    q
      .updateTable('due_work')
      .set((eb) => ({
        due_at: due.until,
        leased_until: due.until,
        claim: due.token,
        attempts: eb('attempts', '+', 1),
      }))
      .where('kind', '=', due.kind)
      .where('subject', 'in', textsIn(q, due.subjects)),
)

// Updates of many rows run in a transaction, because a transaction is retried after a deadlock.

/** Renews the lease of work that was claimed together, both running and waiting. Finished work is not renewed. */
export async function renew(
  { db, runtime }: CloudContext,
  [first, ...others]: readonly Claimed[],
  leaseMs: number,
): Promise<void> {
  if (!first) return
  const { kind, claim } = first
  const until = runtime.clock.now() + leaseMs
  await db.transact((tx) =>
    tx.q
      .updateTable('due_work')
      .set({ due_at: until, leased_until: until })
      .where((eb) => eb.and({ kind, claim }))
      .where(
        'subject',
        'in',
        [first, ...others].map(({ subject }) => subject),
      )
      .execute(),
  )
}

/** When the subject is due again. Null after a successful run: nothing is left to do. */
interface Ending {
  dueAt: number | null
  /** The error of a failed run. */
  error?: string
}

/** Ends a run. If the subject was rescheduled during the run, the new time stays and the row can be claimed. */
export async function release(
  { db }: CloudContext,
  { kind, subject, claim }: Claimed,
  { dueAt, error }: Ending,
): Promise<void> {
  const q = db.kysely
  const isOver = dueAt === null && error === undefined
  const released = isOver
    ? (await dropClaimed(q, { kind, subject, claim }))[0]
    : await q
        .updateTable('due_work')
        .set({
          due_at: dueAt,
          leased_until: null,
          claim: null,
          ...(error === undefined ? { attempts: 0, last_error: null } : { last_error: error }),
        })
        .where((eb) => eb.and({ kind, subject, claim }))
        .returning('kind')
        .executeTakeFirst()
  if (released) return
  await q
    .updateTable('due_work')
    .set({ leased_until: null })
    .where((eb) => eb.and({ kind, subject }))
    .where('claim', 'is', null)
    .execute()
}

const dropClaimed = statement((q, { kind, subject, claim }: Pick<Claimed, 'kind' | 'subject' | 'claim'>) =>
  q
    .deleteFrom('due_work')
    .where((eb) => eb.and({ kind, subject, claim }))
    .returning('kind'),
)

/** Releases claimed jobs that were not started: they are due at once, and the attempt does not count. */
export async function giveBack(
  { db, runtime }: CloudContext,
  [first, ...others]: readonly Claimed[],
): Promise<void> {
  if (!first) return
  const { kind, claim } = first
  const subjects = [first, ...others].map(({ subject }) => subject)
  await db.transact(async ({ q }) => {
    const ofThese = () => q.updateTable('due_work').where('kind', '=', kind).where('subject', 'in', subjects)
    await ofThese()
      .set((eb) => ({
        due_at: runtime.clock.now(),
        leased_until: null,
        claim: null,
        attempts: eb('attempts', '-', 1),
      }))
      .where('claim', '=', claim)
      .execute()
    // Subjects that were rescheduled after the claim keep their new time.
    await ofThese().set({ leased_until: null }).where('claim', 'is', null).execute()
  })
}

/** The state of the queue at an instant. */
interface Due {
  /** Kinds with due work. */
  kinds: string[]
  /** The next due time after that instant. */
  nextAt: number | undefined
}

export async function readDue(q: Queries, now: number): Promise<Due> {
  const rows = await dueKinds(q, { now })
  return {
    kinds: rows.flatMap(({ kind }) => kind ?? []),
    nextAt: rows.find(({ kind }) => kind === null)?.due_at ?? undefined,
  }
}

const dueKinds = statement((q, { now }: { now: number }) =>
  q
    .selectFrom('due_work')
    .select((eb) => [eb.ref('kind').$castTo<string | null>().as('kind'), eb.fn.min('due_at').as('due_at')])
    .where('due_at', '<=', now)
    .groupBy('kind')
    .unionAll(
      q
        .selectFrom('due_work')
        .select((eb) => [eb.lit(null).as('kind'), eb.fn.min('due_at').as('due_at')])
        .where('due_at', '>', now),
    ),
)
