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
import { decrypt, encrypt } from '../store/sealer.ts'

/** How long a key identifies its request. Retention deletes it afterwards (`retention.ts`). */
export const KEEP_MS = 24 * 3_600_000
/**
 * A request locks its key for this time and renews the lock while it runs. Without a renewal its process has died, and
 * a repetition replaces it.
 */
const LOCK_MS = 60_000
const RENEW_MS = LOCK_MS / 4

type Parts = Pick<CloudContext, 'db' | 'runtime' | 'log'>

/** Keys of different callers are independent. */
export interface KeyedRequest extends KeyedCaller {
  fingerprint: string
}

const StoredHeaders = z.record(z.string(), z.string())

/** Identifies equal requests by method, path with query, and body. */
export const fingerprintOf = (method: string, pathAndQuery: string, body: string): string =>
  createHash('sha256').update(`${method} ${pathAndQuery}\n${body}`).digest('hex')

/** Identifies a request: constant for all repetitions with its key, in any process and after a database restore. */
export const nameOf = ({ caller, key, fingerprint }: KeyedRequest): string =>
  createHash('sha256')
    .update(JSON.stringify([caller, key, fingerprint]))
    .digest('hex')

/** An answer, and its memento if the answer can be read again. */
export interface Made {
  answer: Answer<string>
  memento?: Memento | undefined
}

export interface KeyedWork {
  /** Executes the request. */
  run: () => Promise<Made>
  /** Creates the answer again from the memento of `run`. */
  replay: (memento: Memento) => Promise<Answer<string>>
  /**
   * `begin` is called before `run` and throws if there is no room. `stored` is called with the number of stored bytes.
   */
  room?: { begin(): void; stored(bytes: number): void }
}

/**
 * Runs the first request with a key and stores its answer, or its memento. Later ones get that answer with the header
 * `Idempotent-Replayed`. Answers of 500 and above and thrown errors are not stored: the request may be repeated with
 * the same key. Throws `idempotency_key_in_use` and `idempotency_key_reused`.
 */
export async function idempotently(
  parts: Parts,
  request: KeyedRequest,
  { run, replay, room }: KeyedWork,
): Promise<Answer<string>> {
  const { clock } = parts.runtime
  const q = parts.db.kysely
  // Possible lock times of this request. There are several if the result of a renewal is unknown.
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
      // Otherwise another request has taken the key.
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
      // A row without headers contains a memento.
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
        // A request that has taken the key since is running, or has stored an answer.
        .where('status', 'is', null)
        .where('locked_until', 'in', held)
        .execute()
  }
}

/** Takes the key for this request, or returns the stored answer of an earlier one. */
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
    if (fingerprint !== request.fingerprint)
      throw ApiError.at(['header', 'Idempotency-Key'], 'idempotency_key_reused')
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
 * Stored answers contain data that only their caller may see (client secrets, contacts). The caller's `Idempotency-Key`
 * decrypts them, and the database has only a digest of it. A reader of the database cannot read answers, unless the
 * keys can be guessed.
 */
interface KeyedCaller {
  /** `Credential.actor`. */
  caller: string
  key: string
}

/** The digest that identifies a key in the database. */
const digestOfKey = ({ caller, key }: KeyedCaller): string =>
  createHash('sha256').update(`${caller}\n${key}`).digest('hex')

const secretOf = ({ caller, key }: KeyedCaller): Buffer =>
  Buffer.from(hkdfSync('sha256', key, caller, 'larder kept answer', 32))

const seal = (keyed: KeyedCaller, text: string, random: Random): string =>
  encrypt(secretOf(keyed), text, random)

/** Throws if the text was not sealed for this caller and key. */
const unseal = (keyed: KeyedCaller, sealed: string): string => decrypt(secretOf(keyed), sealed)
