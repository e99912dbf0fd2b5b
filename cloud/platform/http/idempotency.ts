import { createHash } from 'node:crypto'
import { z } from 'zod'
import { everyInBackground } from '../work/background.ts'
import type { CloudContext } from '../context.ts'
import { ApiError } from '../api-error.ts'

/** How long a key names its request (contract §3). */
export const KEEP_MS = 24 * 3_600_000
/**
 * So long a request has its key before it has to renew it, which it does however long it takes. One that has not, has died
 * with its process; a repetition takes its place.
 */
const LOCK_MS = 60_000
const RENEW_MS = LOCK_MS / 4
const MAX_LENGTH = 255

/** An answer as it is stored and sent. */
export interface Answer {
  status: number
  headers: Readonly<Record<string, string>>
  body: string
}

export interface KeyedRequest {
  /** `Credential.actor`: keys of different callers have nothing to do with each other. */
  caller: string
  key: string
  fingerprint: string
}

const StoredHeaders = z.record(z.string(), z.string())

/** What makes two requests the same one: method, path with query, and body (contract §3). */
export const fingerprintOf = (method: string, pathAndQuery: string, body: string): string =>
  createHash('sha256').update(`${method} ${pathAndQuery}\n${body}`).digest('hex')

/** The `Idempotency-Key` of a request; throws `validation_error` for one that cannot be a key. */
export function idempotencyKeyOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const loc = ['header', 'Idempotency-Key']
  if (header === '')
    throw new ApiError('validation_error', undefined, undefined, [
      {
        loc,
        msg: 'String should have at least 1 character',
        type: 'string_too_short',
        ctx: { min_length: 1 },
      },
    ])
  if (header.length > MAX_LENGTH)
    throw new ApiError('validation_error', undefined, undefined, [
      {
        loc,
        msg: `String should have at most ${MAX_LENGTH} characters`,
        type: 'string_too_long',
        ctx: { max_length: MAX_LENGTH },
      },
    ])
  return header
}

/**
 * Runs `work` for the first request with a key and stores its answer; later ones get that answer, marked
 * `Idempotent-Replayed`. Answers of 500 and above are not stored, and neither is anything of a `work` that throws: the
 * request may then be made again with the same key.
 */
export async function idempotently(
  context: Pick<CloudContext, 'db' | 'runtime' | 'log'>,
  request: KeyedRequest,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const q = context.db.kysely
  const { clock } = context.runtime
  let lockedUntil = 0
  const replay = await claim()
  if (replay) return { ...replay, headers: { ...replay.headers, 'Idempotent-Replayed': 'true' } }

  const mine = () =>
    q.deleteFrom('idempotency_keys').where('credential', '=', request.caller).where('key', '=', request.key)
  const endRenewal = everyInBackground(context, RENEW_MS, 'renewal of an idempotency key', renew)
  let answer: Answer
  try {
    answer = await work()
  } catch (error) {
    await mine().execute()
    throw error
  } finally {
    endRenewal()
  }
  if (answer.status >= 500) await mine().execute()
  else
    await q
      .updateTable('idempotency_keys')
      .set({ status: answer.status, headers: JSON.stringify(answer.headers), body: answer.body })
      .where('credential', '=', request.caller)
      .where('key', '=', request.key)
      .execute()
  return answer

  /** Not a key that another one has taken meanwhile. */
  async function renew(): Promise<void> {
    const until = clock.now() + LOCK_MS
    const { numUpdatedRows } = await q
      .updateTable('idempotency_keys')
      .set({ locked_until: until })
      .where('credential', '=', request.caller)
      .where('key', '=', request.key)
      .where('status', 'is', null)
      .where('locked_until', '=', lockedUntil)
      .executeTakeFirst()
    if (numUpdatedRows === 1n) lockedUntil = until
  }

  /** Takes the key for this request, or returns the answer that another one has left under it. */
  async function claim(): Promise<Answer | undefined> {
    const now = clock.now()
    lockedUntil = now + LOCK_MS
    const row = {
      credential: request.caller,
      key: request.key,
      fingerprint: request.fingerprint,
      locked_until: lockedUntil,
      created_at: now,
    }
    return context.db.transact(async (tx) => {
      const { q } = tx
      await q
        .deleteFrom('idempotency_keys')
        .where('credential', '=', request.caller)
        .where('key', '=', request.key)
        .where('created_at', '<=', now - KEEP_MS)
        .execute()
      const inserted = await q
        .insertInto('idempotency_keys')
        .values({ ...row, status: null, headers: null, body: null })
        .onConflict((conflict) => conflict.columns(['credential', 'key']).doNothing())
        .returning('key')
        .executeTakeFirst()
      if (inserted) return undefined
      const first = await tx
        .forUpdate(
          q
            .selectFrom('idempotency_keys')
            .selectAll()
            .where('credential', '=', request.caller)
            .where('key', '=', request.key),
        )
        .executeTakeFirst()
      if (!first) throw new ApiError('idempotency_key_in_use')
      if (first.fingerprint !== request.fingerprint) throw new ApiError('idempotency_key_reused')
      if (first.status !== null)
        return {
          status: first.status,
          headers: StoredHeaders.parse(JSON.parse(first.headers ?? '{}')),
          body: first.body ?? '',
        }
      if (first.locked_until > now) throw new ApiError('idempotency_key_in_use')
      await q
        .updateTable('idempotency_keys')
        .set({ locked_until: lockedUntil })
        .where('credential', '=', request.caller)
        .where('key', '=', request.key)
        .execute()
      return undefined
    })
  }
}

/** Forgets keys that have had their time. */
export async function purgeIdempotencyKeys({
  db,
  runtime,
}: Pick<CloudContext, 'db' | 'runtime'>): Promise<void> {
  await db.kysely
    .deleteFrom('idempotency_keys')
    .where('created_at', '<=', runtime.clock.now() - KEEP_MS)
    .execute()
}
