import type { Selectable } from 'kysely'
import { HubEntry, TelemetryEntry } from '../../protocol/mqtt/hub-entries.ts'
import { appendAudit } from '../platform/audit/audit.ts'
import { timestamp } from '../platform/calendar/days.ts'
import type { CloudContext } from '../platform/context.ts'
import { defaultLimits } from '../platform/settings/limits.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import type { Tables } from '../platform/store/schema.ts'
import { DeadLetterRoom, isCut, kindOf } from './dead-letter-room.ts'
import { ApplyError, type HubDomain } from './domain.ts'
import { applyInOrder, applyTelemetry, errorText, isStoreFailure, type RawEntry } from './receiver.ts'

/** Entries of hubs that could not be applied (I8), for operators: rows of `dead_letters`. */

type LetterRow = Selectable<Tables['dead_letters']>

export interface DeadLetterFilter {
  ids?: readonly number[] | undefined
  hubId?: number | undefined
  limit?: number
}

/** Dead letters, the oldest first, which is the order for replaying them. */
export async function deadLetters(q: Queries, { ids, hubId, limit }: DeadLetterFilter) {
  let query = q.selectFrom('dead_letters').selectAll().orderBy('id')
  if (ids !== undefined) query = query.where('id', 'in', ids.length > 0 ? ids : [0])
  if (hubId !== undefined) query = query.where('hub_id', '=', hubId)
  if (limit !== undefined) query = query.limit(limit)
  return (await query.execute()).map(({ at, body, ...letter }) => {
    const entry: unknown = JSON.parse(body)
    return { ...letter, kind: kindOf(entry), at: timestamp(at), body: entry }
  })
}

export type Replay =
  { id: number; outcome: 'applied' | 'not_found' } | { id: number; outcome: 'failed'; error: string }

/**
 * Applies a dead letter with the receiver's code and under its lock, in one transaction. On success the letter is
 * deleted; on failure it stays with the new error. An error of the store is thrown, and nothing has changed.
 */
export async function replayDeadLetter(
  context: CloudContext,
  domain: HubDomain,
  { id, actor }: { id: number; actor: string },
): Promise<Replay> {
  return context.db.transact(async (tx) => {
    const letter = await lockLetter(tx, id)
    if (!letter) return { id, outcome: 'not_found' }
    try {
      await tx.savepoint(() => apply(tx, context, domain, letter))
    } catch (error) {
      if (isStoreFailure(error)) throw error
      await tx.q
        .updateTable('dead_letters')
        .set({ error: errorText(error) })
        .where('id', '=', id)
        .execute()
      return { id, outcome: 'failed', error: errorText(error) }
    }
    await removeLetter(tx, { context, domain }, letter, { actor, action: 'dead_letters.replay' })
    if (letter.stream === 'ledger') await askForAccount(tx, letter.hub_id)
    return { id, outcome: 'applied' }
  })
}

/** Deletes a dead letter. False if there is none. */
export async function dropDeadLetter(
  context: CloudContext,
  domain: HubDomain,
  { id, actor }: { id: number; actor: string },
): Promise<boolean> {
  return context.db.transact(async (tx) => {
    const letter = await lockLetter(tx, id)
    if (letter) await removeLetter(tx, { context, domain }, letter, { actor, action: 'dead_letters.drop' })
    return letter !== undefined
  })
}

/** Reads a letter after locking the cursors of its hub's streams, as the receiver does. */
async function lockLetter(tx: Tx, id: number): Promise<LetterRow | undefined> {
  const find = () => tx.q.selectFrom('dead_letters').selectAll().where('id', '=', id)
  const seen = await find().executeTakeFirst()
  if (!seen) return undefined
  await tx
    .forUpdate(tx.q.selectFrom('hub_streams').select('cursor').where('hub_id', '=', seen.hub_id))
    .execute()
  return tx.forUpdate(find()).executeTakeFirst()
}

async function removeLetter(
  tx: Tx,
  { context, domain }: { context: CloudContext; domain: HubDomain },
  { id, hub_id: hubId, stream, epoch, seq, body, error }: LetterRow,
  by: { actor: string; action: string },
): Promise<void> {
  await tx.q.deleteFrom('dead_letters').where('id', '=', id).execute()
  domain.deadLettersChanged(tx, context, hubId)
  await appendAudit(tx.q, context.runtime, {
    ...by,
    hubId,
    object: `dead-letter-${id}`,
    result: 'executed',
    detail: { stream, epoch, seq, kind: kindOf(JSON.parse(body)), error },
  })
}

async function apply(tx: Tx, context: CloudContext, domain: HubDomain, letter: LetterRow): Promise<void> {
  const { hub_id: hubId, stream, epoch, seq } = letter
  const body: unknown = JSON.parse(letter.body)
  if (isCut(body)) throw new ApplyError('the entry was too long: only its beginning is stored')
  const room = new DeadLetterRoom({ clock: context.runtime.clock, settings: defaultLimits.gateway, hubId })
  const receiving = { context, domain, room, hubId, isLate: true, onCommandFinished: () => {} } as const
  const raw: Omit<RawEntry, 'stream'> = { epoch, seq, body }
  if (stream === 'telemetry') {
    TelemetryEntry.parse(body)
    return applyTelemetry(tx, receiving, [{ ...raw, stream }])
  }
  const { kind } = HubEntry.parse(body)
  // The hub's new snapshot (`askForAccount`) replaces these entries.
  if (kind === 'state' || kind === 'alarm' || kind === 'snapshot') return
  await applyInOrder(tx, receiving, [{ ...raw, stream: 'ledger' }])
}

/**
 * Makes a hub report its whole state again, because a late entry changed what an earlier snapshot reported. The cloud
 * stops following its streams. So the cloud answers its next batch with a `Hail` and its hello with `restart` (SPEC
 * §4). A connected hub sends a batch at the latest with its next temperature.
 */
async function askForAccount(tx: Tx, hubId: number): Promise<void> {
  await tx.q
    .updateTable('hub_streams')
    .set({ is_current: 0 })
    .where('hub_id', '=', hubId)
    .where('is_current', '=', 1)
    .execute()
}
