import type { Selectable } from 'kysely'
import { z } from 'zod'
import { scopes, type Scope } from '../../../protocol/model/scopes.ts'
import type { Random, Runtime } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import { cellOf, markOf } from '../cells.ts'
import type { CloudContext } from '../context.ts'
import type { Queries } from '../store/database.ts'
import { numbersIn } from '../store/recordset.ts'
import type { Tables } from '../store/schema.ts'
import { allOf, statement } from '../store/statement.ts'
import { background } from '../work/background.ts'
import { base62, digestOf, isSameDigest } from './secrets.ts'

/** Minimum interval between two writes of `last_used_at`. */
const TOUCH_MS = 3_600_000

const StoredScopes = z.array(z.enum(scopes))
/** Hub ids, or `*` for all hubs (of the key's owner; for a role, of every owner). */
export const StoredHubs = z.union([z.literal('*'), z.array(z.int())])
export type HubSelection = z.infer<typeof StoredHubs>

/** An API key without its secret. */
export interface ApiKey {
  prefix: string
  name: string
  ownerId: number
  scopes: readonly Scope[]
  hubs: HubSelection
  createdAt: number
  expiresAt: number | null
  revokedAt: number | null
  lastUsedAt: number | null
}

export interface ApiKeyRequest {
  name: string
  ownerId: number
  scopes: readonly Scope[]
  hubs: HubSelection
  expiresAt: number | null
}

/**
 * `lk_`, a public prefix of 8 characters, `_`, and 32 random bytes in base 62. A key of cell 7 begins with `lk7_`, so that a
 * proxy finds the cell.
 */
const FORMAT = /^lk(?:[1-9]\d?)?_([0-9A-Za-z]{8})_[0-9A-Za-z]{43}$/

export interface NewApiKey {
  /** Shown once, never stored. */
  key: string
  prefix: string
  digest: string
}

export function mintApiKey(random: Random, cell = 0): NewApiKey {
  // 6 bytes need 9 digits; the first one is hardly random.
  const prefix = base62(random.bytes(6)).slice(1)
  const key = `lk${markOf(cell)}_${prefix}_${base62(random.bytes(32))}`
  return { key, prefix, digest: digestOf(key) }
}

/** The public prefix of a text with the form of an API key. */
export const prefixOf = (key: string): string | undefined => FORMAT.exec(key)?.[1]

/** Issues a key. Its rights never change afterwards. */
export async function issueApiKey(q: Queries, runtime: Runtime, request: ApiKeyRequest): Promise<NewApiKey> {
  const minted = mintApiKey(runtime.random, cellOf(request.ownerId))
  await q
    .insertInto('api_keys')
    .values({
      prefix: minted.prefix,
      digest: minted.digest,
      name: request.name,
      owner_id: request.ownerId,
      scopes: JSON.stringify(request.scopes),
      hubs: JSON.stringify(request.hubs),
      created_at: runtime.clock.now(),
      expires_at: request.expiresAt,
      revoked_at: null,
      last_used_at: null,
    })
    .execute()
  return minted
}

/** The keys of some owners, or of all. */
export async function listApiKeys(q: Queries, owners?: readonly number[]): Promise<ApiKey[]> {
  let query = q.selectFrom('api_keys').selectAll().orderBy('created_at').orderBy('prefix')
  if (owners !== undefined) query = query.where('owner_id', 'in', numbersIn(q, owners))
  return (await query.execute()).map(fromRow)
}

/** The number of an owner's keys that are valid. */
export async function countValidKeys(q: Queries, { clock }: Runtime, ownerId: number): Promise<number> {
  const { count } = await q
    .selectFrom('api_keys')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('owner_id', '=', ownerId)
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', clock.now())]))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * Issues a successor with the same rights. The old key ends at `endsAt`, or at its earlier end. Until then both keys
 * are valid, so that callers can switch without a gap. Returns undefined if the old key has ended, even if it ended
 * just now.
 */
export async function rotateApiKey(
  q: Queries,
  runtime: Runtime,
  { prefix, name, ownerId, scopes: granted, hubs }: ApiKey,
  { endsAt, expiresAt }: { endsAt: number; expiresAt: number | null },
): Promise<NewApiKey | undefined> {
  const { numUpdatedRows } = await q
    .updateTable('api_keys')
    .set((eb) => ({
      expires_at: eb
        .case()
        .when('expires_at', '<', endsAt)
        .then(eb.ref('expires_at'))
        .else(eb.val(endsAt))
        .end(),
    }))
    .where('prefix', '=', prefix)
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', runtime.clock.now())]))
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return undefined
  return issueApiKey(q, runtime, { name, ownerId, scopes: granted, hubs, expiresAt })
}

/** Ends a key at once. False if there is no such key. */
export async function revokeApiKey(q: Queries, { clock }: Runtime, prefix: string): Promise<boolean> {
  const { numUpdatedRows } = await q
    .updateTable('api_keys')
    .set((eb) => ({ revoked_at: eb.fn.coalesce('revoked_at', eb.val(clock.now())) }))
    .where('prefix', '=', prefix)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

const byPrefix = statement((q, key: { prefix: string }) =>
  q.selectFrom('api_keys').select(allOf('api_keys')).where('prefix', '=', key.prefix),
)

/** A genuine key after its revocation. Its caller still uses it, or has stolen it. */
export class RevokedKey extends ApiError {
  readonly prefix: string

  constructor(prefix: string) {
    super('invalid_api_key', 'The API key was revoked.')
    this.prefix = prefix
    this.why = { why: 'the key was revoked' }
  }
}

/** After a failed write of a key's use, further calls within this time do not write again. */
const RENOTE_MS = 60_000

/**
 * Writes the last use of keys in the background: no request waits for the write or fails because of it. Uses that
 * arrive during a write are written together after it.
 */
export class KeyUses {
  readonly #context: CloudContext
  /** The last noted use, by prefix. */
  readonly #noted = new Map<string, number>()
  readonly #waiting = new Set<string>()
  #isWriting = false

  constructor(context: CloudContext) {
    this.#context = context
  }

  note({ prefix, lastUsedAt }: Pick<ApiKey, 'prefix' | 'lastUsedAt'>): void {
    const now = this.#context.runtime.clock.now()
    if (
      now - (lastUsedAt ?? -Infinity) < TOUCH_MS ||
      now - (this.#noted.get(prefix) ?? -Infinity) < RENOTE_MS
    )
      return
    this.#noted.set(prefix, now)
    this.#waiting.add(prefix)
    if (!this.#isWriting) background(this.#context, 'last use of API keys', () => this.#write())
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    try {
      while (this.#waiting.size > 0) {
        const prefixes = [...this.#waiting]
        this.#waiting.clear()
        await this.#context.db.kysely
          .updateTable('api_keys')
          .set({ last_used_at: this.#context.runtime.clock.now() })
          .where('prefix', 'in', prefixes)
          .execute()
      }
    } finally {
      this.#isWriting = false
    }
  }
}

/** A key as stored in the database. */
export type StoredKey = ApiKey & Pick<NewApiKey, 'digest'>

export async function readApiKey(q: Queries, prefix: string): Promise<StoredKey | undefined> {
  const [row] = await byPrefix(q, { prefix })
  return row && { ...fromRow(row), digest: row.digest }
}

/** The key of a request. Throws `invalid_api_key` (`RevokedKey`) or `token_expired`. */
export async function verifyApiKey(
  readKey: (prefix: string) => Promise<StoredKey | undefined>,
  { clock }: Runtime,
  presented: string,
): Promise<ApiKey> {
  const prefix = prefixOf(presented)
  const key = prefix === undefined ? undefined : await readKey(prefix)
  if (!key || !isSameDigest(key.digest, digestOf(presented))) throw new ApiError('invalid_api_key')
  if (key.revokedAt !== null) throw new RevokedKey(key.prefix)
  if (key.expiresAt !== null && key.expiresAt <= clock.now())
    throw new ApiError('token_expired', 'The API key has expired.')
  return key
}

function fromRow(row: Selectable<Tables['api_keys']>): ApiKey {
  return {
    prefix: row.prefix,
    name: row.name,
    ownerId: row.owner_id,
    scopes: StoredScopes.parse(JSON.parse(row.scopes)),
    hubs: StoredHubs.parse(JSON.parse(row.hubs)),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  }
}
