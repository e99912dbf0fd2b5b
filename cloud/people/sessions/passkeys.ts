import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { randomHex } from '../../../protocol/model/ids.ts'
import { nameText } from '../../../protocol/model/name-text.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudits } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { VerifiedIdentity } from '../../platform/credentials/identity-token.ts'
import { grantRole, listRoles, recordsOfGrant } from '../../platform/credentials/roles.ts'
import { digestOf } from '../../platform/credentials/secrets.ts'
import type { Session } from '../../platform/credentials/sessions.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { detailOf, findInvitation } from '../staff/invitations.ts'

/**
 * Passkeys of staff (WebAuthn). An invitation registers one; a sign-in proves it. The library checks challenge, origin
 * and signature. Person and device are both proven: user verification is required.
 */

/** Loaded at the first use. With its libraries of certificates it takes a tenth of a start. */
const webauthn = () => import('@simplewebauthn/server')

/** The address of the service in the browser. A passkey belongs to its host. */
type Site = Pick<URL, 'origin' | 'hostname'>

/** A registration or sign-in that has begun in this browser. */
export const PendingPasskey = z.object({
  /** base64url */
  challenge: z.string(),
  /** Digest of the invitation that is accepted. */
  invitation: z.string().optional(),
  /** The signed-in person who adds a passkey. */
  identity: z.string().optional(),
  expiresAt: z.number(),
})
export type PendingPasskey = z.infer<typeof PendingPasskey>

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text, 'base64url'))
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')
const refused = (why: string): ApiError => new ApiError('invalid_token', why)
const noInvitation = () =>
  new ApiError(
    'not_found',
    'The invitation is unknown, was accepted before, or has expired. Ask for a new one.',
  )

/** Name of a passkey that tells the person's devices apart. */
export const PasskeyLabel = nameText(60)
type Labelled<T> = T & { label: string | null }

export type Passkey = Selectable<Tables['passkeys']>
/** Passkeys of a person. */
const MAX_PASSKEYS = 20

const passkeysQuery = (q: Queries, identity: string) =>
  q.selectFrom('passkeys').selectAll().where('identity', '=', identity).orderBy('created_at')

/** The passkeys of a person, oldest first. */
export const passkeysOf = (q: Queries, identity: string): Promise<Passkey[]> =>
  passkeysQuery(q, identity).execute()

export const notOfPasskey = () =>
  new ApiError('forbidden', 'Only a person who signs in with a passkey can have more passkeys.')

/**
 * The options for the browser: of a sign-in, of an invitation, or of a further passkey of a person. Throws `not_found` without
 * an open invitation, `forbidden` for a person without a passkey.
 */
export async function passkeyOptions(
  context: CloudContext,
  site: Site,
  secret: string | undefined,
  identity: string | undefined,
): Promise<{ answer: object; pending: Omit<PendingPasskey, 'expiresAt'> }> {
  const challenge = Uint8Array.from(context.runtime.random.bytes(32))
  const pending = { challenge: textOf(challenge) }
  const { generateAuthenticationOptions, generateRegistrationOptions } = await webauthn()
  const registrationOf = ({ name, email }: Pick<Passkey, 'name' | 'email'>, known: readonly Passkey[]) =>
    generateRegistrationOptions({
      rpName: 'Larder',
      rpID: site.hostname,
      userName: email ?? name,
      userDisplayName: name,
      userID: Uint8Array.from(context.runtime.random.bytes(16)),
      challenge,
      attestationType: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      excludeCredentials: known.map(({ id }) => ({ id })),
    })
  if (identity !== undefined) {
    const known = await passkeysOf(context.db.kysely, identity)
    if (!known[0]) throw notOfPasskey()
    return {
      answer: { registration: await registrationOf(known[0], known) },
      pending: { ...pending, identity },
    }
  }
  if (secret === undefined) {
    const authentication = await generateAuthenticationOptions({
      rpID: site.hostname,
      challenge,
      userVerification: 'required',
    })
    return { answer: { authentication }, pending }
  }
  const invitation = digestOf(secret)
  const found = await findInvitation(context.db.kysely, context.runtime, invitation)
  if (!found) throw noInvitation()
  const { name, role, hubs } = found
  return {
    answer: { registration: await registrationOf(found, []), invited: { name, role, hubs } },
    pending: { ...pending, invitation },
  }
}

/**
 * The person who has answered the challenge. Each challenge is accepted once, and so is each invitation. Throws
 * `invalid_token`, `not_found`.
 */
export function provenPerson(
  context: CloudContext,
  site: Site,
  pending: PendingPasskey,
  response: Labelled<object>,
): Promise<VerifiedIdentity> {
  const { invitation } = pending
  return invitation === undefined
    ? signedIn(context, site, pending, response as object as AuthenticationResponseJSON)
    : registered(context, site, { ...pending, invitation }, response as Labelled<RegistrationResponseJSON>)
}

const personOf = (identity: string, email: string | null): VerifiedIdentity => ({
  identity,
  claims: { phoneNumber: null, email, emailVerified: false, anonymous: false, roles: [] },
})

/** Throws `invalid_token` in place of the library's errors, which describe the violated rule. */
async function checked<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw refused(`The passkey is refused: ${error instanceof Error ? error.message : String(error)}`)
  }
}
const wrongSignature = () => refused('The passkey is refused: its signature is wrong.')

/** The new passkey in an answer of a browser. */
async function newPasskey(
  { runtime }: CloudContext,
  site: Site,
  challenge: string,
  { label, ...response }: Labelled<RegistrationResponseJSON>,
) {
  const { verifyRegistrationResponse } = await webauthn()
  const { registrationInfo } = await checked(
    verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.hostname,
    }),
  )
  if (!registrationInfo) throw wrongSignature()
  const { id, publicKey, counter } = registrationInfo.credential
  return { id, public_key: textOf(publicKey), counter, created_at: runtime.clock.now(), label }
}

async function store(q: Queries, passkey: Passkey): Promise<void> {
  const { numInsertedOrUpdatedRows } = await q
    .insertInto('passkeys')
    .values(passkey)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows === 0n) throw refused('This passkey is registered already.')
}

/** Adds a passkey to the account of a person. Throws `invalid_token`, `forbidden`. */
export async function addPasskey(
  context: CloudContext,
  site: Site,
  { challenge, identity }: Pick<PendingPasskey, 'challenge'> & { identity: string },
  response: Labelled<object>,
): Promise<void> {
  const passkey = await newPasskey(context, site, challenge, response as Labelled<RegistrationResponseJSON>)
  await context.db.transact(async (tx) => {
    // The person may have been removed since. Of two removals at once, the second waits here.
    const all = await tx.forUpdate(passkeysQuery(tx.q, identity)).execute()
    const [known] = all
    if (!known) throw notOfPasskey()
    if (all.length >= MAX_PASSKEYS)
      throw new ApiError('forbidden', `You have ${MAX_PASSKEYS} passkeys. Remove one first.`)
    const { name, email } = known
    await store(tx.q, { ...passkey, identity, name, email })
    await recordPasskey(tx.q, context, 'passkeys.add', { id: passkey.id, identity, name })
  })
}

/** Changes the label of a passkey of a person. Throws `not_found`. */
export async function labelPasskey(
  context: CloudContext,
  { identity }: Pick<Session, 'identity'>,
  { id, label }: { id: string; label: string },
): Promise<void> {
  await context.db.transact(async (tx) => {
    const changed = await tx.q
      .updateTable('passkeys')
      .set({ label })
      .where('id', '=', id)
      .where('identity', '=', identity)
      .returningAll()
      .executeTakeFirst()
    if (!changed) throw new ApiError('not_found')
    await recordPasskey(tx.q, context, 'passkeys.label', changed)
  })
}

/** Removes a passkey of a person, and ends the person's other sessions. Throws `not_found`, `forbidden` for the last one. */
export async function removePasskey(
  context: CloudContext,
  { id: sessionId, identity }: Pick<Session, 'id' | 'identity'>,
  id: string,
): Promise<void> {
  await context.db.transact(async (tx) => {
    const known = await tx.forUpdate(passkeysQuery(tx.q, identity)).execute()
    const found = known.find((passkey) => passkey.id === id)
    if (!found) throw new ApiError('not_found')
    if (known.length === 1)
      throw new ApiError('forbidden', 'This is your only passkey. Add another one first.')
    await tx.q.deleteFrom('passkeys').where('id', '=', id).execute()
    // The lost device may have signed in.
    await tx.q.deleteFrom('sessions').where('identity', '=', identity).where('id', '!=', sessionId).execute()
    await recordPasskey(tx.q, context, 'passkeys.remove', found)
  })
}

/** The records of a change of a person's passkeys: one for each hub of the person's roles. */
async function recordPasskey(
  q: Queries,
  { runtime }: CloudContext,
  action: string,
  { id, identity, name }: Pick<Passkey, 'id' | 'identity' | 'name'>,
): Promise<void> {
  const act = { actor: `identity:${identity}`, action, object: `passkey-${id.slice(0, 8)}` }
  const roles = await listRoles(q, identity)
  const records = roles.flatMap(({ role, hubs }) => recordsOfGrant(act, { name, role, hubs }))
  await appendAudits(q, runtime, records)
}

async function registered(
  context: CloudContext,
  site: Site,
  { challenge, invitation }: PendingPasskey & { invitation: string },
  response: Labelled<RegistrationResponseJSON>,
): Promise<VerifiedIdentity> {
  const { db, runtime } = context
  const passkey = await newPasskey(context, site, challenge, response)
  const identity = `staff-${randomHex(runtime.random, 16)}`
  return db.transact(async (tx) => {
    const found = await findInvitation(tx.q, runtime, invitation, tx)
    // Of two browsers that accept at once, one deletes the row.
    const { numDeletedRows } = await tx.q
      .deleteFrom('invitations')
      .where('digest', '=', invitation)
      .executeTakeFirst()
    if (!found || numDeletedRows === 0n) throw noInvitation()
    const { name, email, role, hubs } = found
    await store(tx.q, { ...passkey, identity, name, email })
    const roleId = await grantRole(tx.q, runtime, { identity, role, hubs })
    const act = { actor: `identity:${identity}`, action: 'invitations.accept', object: `role-${roleId}` }
    const detail = { invitation: found.id, ...detailOf(found) }
    await appendAudits(tx.q, runtime, recordsOfGrant(act, detail))
    return personOf(identity, email)
  })
}

async function signedIn(
  { db }: CloudContext,
  site: Site,
  { challenge, expiresAt }: PendingPasskey,
  response: AuthenticationResponseJSON,
): Promise<VerifiedIdentity> {
  const known = await db.kysely
    .selectFrom('passkeys')
    .selectAll()
    .where('id', '=', response.id)
    .executeTakeFirst()
  if (!known) throw refused('The service does not know this passkey. The person may have been removed.')
  const { verifyAuthenticationResponse } = await webauthn()
  const { verified, authenticationInfo } = await checked(
    verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.hostname,
      credential: { id: known.id, publicKey: bytesOf(known.public_key), counter: known.counter },
    }),
  )
  if (!verified) throw wrongSignature()
  return db.transact(async (tx) => {
    const { numInsertedOrUpdatedRows } = await tx.q
      .insertInto('used_challenges')
      .values({ digest: digestOf(challenge), expires_at: expiresAt })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows === 0n) throw refused('This sign-in has been used already.')
    const { numUpdatedRows } = await tx.q
      .updateTable('passkeys')
      .set({ counter: authenticationInfo.newCounter })
      .where('id', '=', known.id)
      .executeTakeFirst()
    // The person was removed in between.
    if (numUpdatedRows === 0n) throw refused('The service does not know this passkey.')
    return personOf(known.identity, known.email)
  })
}
