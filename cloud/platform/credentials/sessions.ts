import { createHmac } from 'node:crypto'
import { background } from '../work/background.ts'
import type { CloudContext } from '../context.ts'
import type { Queries } from '../store/database.ts'
import { allOf, statement } from '../store/statement.ts'
import type { IdentityClaims } from './credential.ts'
import type { VerifiedIdentity } from './identity-token.ts'
import { base62, digestOf } from './secrets.ts'

/**
 * The session of a browser: a guest, or a person who has signed in. Its cookie contains a random secret, and the
 * database only the digest of it.
 */
export interface Session extends VerifiedIdentity {
  id: number
  createdAt: number
  expiresAt: number
}

type SessionContext = Pick<CloudContext, 'db' | 'runtime' | 'settings'>

/** A use moves the end of a session at most this often, as a part of the time that the use adds. */
const TOUCH_PART = 20

/** Maximum time without a call. */
const idleMs = ({ settings }: SessionContext, { anonymous }: IdentityClaims): number =>
  anonymous ? settings.guestSessionMs : settings.sessionIdleMs

/** The end of a session that is used now. A guest has no other credential, so its session has no longest time. */
function endOf(
  context: SessionContext,
  { claims, createdAt }: Pick<Session, 'claims' | 'createdAt'>,
): number {
  const idle = context.runtime.clock.now() + idleMs(context, claims)
  return claims.anonymous ? idle : Math.min(createdAt + context.settings.sessionMs, idle)
}

/** Starts a session and returns the secret of its cookie. */
export async function startSession(
  context: SessionContext,
  q: Queries,
  { identity, claims }: VerifiedIdentity,
): Promise<string> {
  const { clock, random } = context.runtime
  const secret = base62(random.bytes(32))
  const createdAt = clock.now()
  await q
    .insertInto('sessions')
    .values({
      digest: digestOf(secret),
      identity,
      claims: JSON.stringify(claims),
      created_at: createdAt,
      expires_at: endOf(context, { claims, createdAt }),
    })
    .execute()
  return secret
}

const byDigest = statement((q, key: { digest: string }) =>
  q.selectFrom('sessions').select(allOf('sessions')).where('digest', '=', key.digest),
)

/** The session with this digest, if it has not ended. */
export async function readSession(
  { db, runtime }: Pick<CloudContext, 'db' | 'runtime'>,
  digest: string,
): Promise<Session | undefined> {
  const [row] = await byDigest(db.kysely, { digest })
  if (!row || row.expires_at <= runtime.clock.now()) return undefined
  const { id, identity, claims, created_at: createdAt, expires_at: expiresAt } = row
  return { id, identity, claims: JSON.parse(claims) as IdentityClaims, createdAt, expiresAt }
}

/** Moves the end of a used session, in the background. */
export function touchSession(context: CloudContext, session: Session): void {
  const end = endOf(context, session)
  if (end - session.expiresAt < idleMs(context, session.claims) / TOUCH_PART) return
  background(context, 'the end of a session', async () => {
    await context.db.kysely
      .updateTable('sessions')
      .set({ expires_at: end })
      .where('id', '=', session.id)
      .where('expires_at', '<', end)
      .execute()
  })
}

/** Ends the session of a cookie. */
export async function endSession(q: Queries, secret: string): Promise<void> {
  await q.deleteFrom('sessions').where('digest', '=', digestOf(secret)).execute()
}

/** Ends every session of an identity. Returns their number. */
export async function endSessionsOf(q: Queries, identity: string): Promise<number> {
  const { numDeletedRows } = await q
    .deleteFrom('sessions')
    .where('identity', '=', identity)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** The token that writes with this cookie must repeat in `X-CSRF-Token`. Another page cannot read it. */
export const csrfOf = (secret: string): string =>
  createHmac('sha256', secret).update('csrf').digest('base64url')
