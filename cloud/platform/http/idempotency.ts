import { createHash, hkdfSync } from 'node:crypto'
import type { ExpressionBuilder } from 'kysely'
import { z } from 'zod'
import { ApiError } from '../api-error.ts'
import type { CloudContext } from '../context.ts'
import type { Tables } from '../store/schema.ts'
import { everyInBackground } from '../work/background.ts'
import type { Answer } from './answer.ts'
import type { Memento } from './handler.ts'
import type { Random } from '../../../protocol/model/runtime.ts'
import { decrypt, encrypt } from '../store/cipher.ts'

/** How long a key names its request. Retention deletes it then (`retention.ts`). */
export const KEEP_MS = 24 * 3_600_000
/**
 * A request holds its key for so long before it must renew it, which it does however long it takes. One that did not renew
 * it has died with its process; a repetition takes its place.
 */
const LOCK_MS = 60_000
const RENEW_MS = LOCK_MS / 4

type Parts = Pick<CloudContext, 'db' | 'runtime' | 'log'>

/** Keys of different callers have nothing to do with each other. */
export interface KeyedRequest extends KeyedCaller {
  fingerprint: string
}

const StoredHeaders = z.record(z.string(), z.string())

/** What makes two requests the same one: method, path with query, and body. */
export const fingerprintOf = (method: string, pathAndQuery: string, body: string): string =>
  createHash('sha256').update(`${method} ${pathAndQuery}\n${body}`).digest('hex')

/** Names a request: the same for each repetition under its key, in whatever process and whatever database has been put back. */
export const nameOf = ({ caller, key, fingerprint }: KeyedRequest): string =>
  createHash('sha256')
    .update(JSON.stringify([caller, key, fingerprint]))
    .digest('hex')

/** An answer, and what is stored in place of its body if that can be read again. */
export interface Made {
  answer: Answer<string>
  memento?: Memento | undefined
}

export interface KeyedWork {
  /** Executes the request. */
  run: () => Promise<Made>
  /** Makes the answer again from what `run` left in its place. */
  replay: (memento: Memento) => Promise<Answer<string>>
  /** Called before `run`, and with the bytes that were stored after it. The first throws if there is no room. */
  room?: { begin(): void; stored(bytes: number): void }
}

/**
 * Runs the first request with a key and stores its answer, or its memento; later ones get that answer, marked
 * `Idempotent-Replayed`. Answers of 500 and above are not stored, and neither is anything of work that throws: the
 * request may then be made again with the same key. Throws `idempotency_key_in_use` and `idempotency_key_reused`.
 */
export async function idempotently(
  parts: Parts,
  request: KeyedRequest,
  { run, replay, room }: KeyedWork,
): Promise<Answer<string>> {
  const { clock } = parts.runtime
  const q = parts.db.kysely
  // Until when this request may hold its key: several where nobody knows whether a renewal was written.
  const held = [clock.now() + LOCK_MS]
  const earlier = await claim(parts, request, held[0]!)
  if (earlier) {
    const answer = 'memento' in earlier ? await replay(earlier.memento) : earlier
    return { ...answer, headers: { ...answer.headers, 'Idempotent-Replayed': 'true' } }
  }

  const endRenewal = everyInBackground(parts, RENEW_MS, 'renewal of an idempotency key', async () => {
    const until = clock.now() + LOCK_MS
    const before = [...held]
    held.push(until)
    const { numUpdatedRows } = await q
      .updateTable('idempotency_keys')
      .set({ locked_until: until })
      .where(isOf(request))
      .where('status', 'is', null)
      // Otherwise another request has taken the key meanwhile.
      .where('locked_until', 'in', before)
      .executeTakeFirst()
    if (numUpdatedRows === 1n) held.splice(0, before.length)
  })
  let made: Made | undefined
  try {
    room?.begin()
    made = await run()
    return made.answer
  } finally {
    endRenewal()
    if (made && made.answer.status < 500) {
      const { answer, memento } = made
      const text = memento === undefined ? answer.body : JSON.stringify(memento)
      const body = seal(request, text, parts.runtime.random)
      // Without headers it is a memento.
      const headers = memento === undefined ? JSON.stringify(answer.headers) : null
      await q
        .updateTable('idempotency_keys')
        .set({ status: answer.status, headers, body })
        .where(isOf(request))
        .execute()
      room?.stored(body.length + (headers?.length ?? 0))
    } else
      await q
        .deleteFrom('idempotency_keys')
        .where(isOf(request))
        // Who has taken the key meanwhile is at work, or has left an answer under it.
        .where('status', 'is', null)
        .where('locked_until', 'in', held)
        .execute()
  }
}

/** Takes the key for this request, or returns the answer that an earlier one has left under it. */
function claim(
  { db, runtime }: Parts,
  request: KeyedRequest,
  lockedUntil: number,
): Promise<Answer<string> | { memento: Memento } | undefined> {
  const now = runtime.clock.now()
  return db.transact(async (tx) => {
    const { q } = tx
    await q
      .deleteFrom('idempotency_keys')
      .where(isOf(request))
      .where('created_at', '<=', now - KEEP_MS)
      .execute()
    const inserted = await q
      .insertInto('idempotency_keys')
      .values({
        credential: request.caller,
        key: digestOfKey(request),
        fingerprint: request.fingerprint,
        locked_until: lockedUntil,
        created_at: now,
        status: null,
        headers: null,
        body: null,
      })
      .onConflict((conflict) => conflict.columns(['credential', 'key']).doNothing())
      .returning('key')
      .executeTakeFirst()
    if (inserted) return undefined
    const first = await tx
      .forUpdate(q.selectFrom('idempotency_keys').selectAll().where(isOf(request)))
      .executeTakeFirst()
    if (!first) throw new ApiError('idempotency_key_in_use')
    const { fingerprint, status, headers, body } = first
    if (fingerprint !== request.fingerprint) throw new ApiError('idempotency_key_reused')
    if (status !== null) {
      const text = unseal(request, body ?? '')
      if (headers === null) return { memento: JSON.parse(text) as Memento }
      return { status, headers: StoredHeaders.parse(JSON.parse(headers)), body: text }
    }
    if (first.locked_until > now) throw new ApiError('idempotency_key_in_use')
    await q.updateTable('idempotency_keys').set({ locked_until: lockedUntil }).where(isOf(request)).execute()
    return undefined
  })
}

/** The row of a request's key. */
const isOf = (request: KeyedRequest) => (eb: ExpressionBuilder<Tables, 'idempotency_keys'>) =>
  eb.and({ credential: request.caller, key: digestOfKey(request) })

/**
 * Answers that are kept for repetitions hold what only their caller may see (client secrets, contacts). The caller's own
 * `Idempotency-Key` opens them, and of that the database has a digest alone: whoever reads the database reads no answers, as
 * far as keys cannot be guessed.
 */
interface KeyedCaller {
  /** `Credential.actor`. */
  caller: string
  key: string
}

/** By which the database knows a key. */
const digestOfKey = ({ caller, key }: KeyedCaller): string =>
  createHash('sha256').update(`${caller}\n${key}`).digest('hex')

const secretOf = ({ caller, key }: KeyedCaller): Buffer =>
  Buffer.from(hkdfSync('sha256', key, caller, 'larder kept answer', 32))

const seal = (keyed: KeyedCaller, text: string, random: Random): string =>
  encrypt(secretOf(keyed), text, random)

/** Throws for what was not sealed for this caller and key. */
const unseal = (keyed: KeyedCaller, sealed: string): string => decrypt(secretOf(keyed), sealed)
