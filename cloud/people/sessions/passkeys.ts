import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
  type AuthenticationResponseJSON,
  type RegistrationResponseJSON,
} from '@simplewebauthn/server'
import { z } from 'zod'
import { randomHex } from '../../../protocol/model/ids.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudits } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { VerifiedIdentity } from '../../platform/credentials/identity-token.ts'
import { grantRole, recordsOfGrant } from '../../platform/credentials/roles.ts'
import { digestOf } from '../../platform/credentials/secrets.ts'
import { detailOf, findInvitation } from '../staff/invitations.ts'

/**
 * Passkeys of staff (WebAuthn). An invitation registers one; a sign-in proves it. The library checks challenge, origin
 * and signature. Person and device are both proven: user verification is required.
 */

/** The address of the service in the browser. A passkey belongs to its host. */
type Site = Pick<URL, 'origin' | 'hostname'>

/** A registration or sign-in that has begun in this browser. */
export const PendingPasskey = z.object({
  /** base64url */
  challenge: z.string(),
  /** Digest of the invitation; absent in a sign-in. */
  invitation: z.string().optional(),
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

/** The options for the browser, and the invited person. Throws `not_found` without an open invitation. */
export async function passkeyOptions(
  context: CloudContext,
  site: Site,
  secret: string | undefined,
): Promise<{ answer: object; pending: Omit<PendingPasskey, 'expiresAt'> }> {
  const challenge = Uint8Array.from(context.runtime.random.bytes(32))
  const pending = { challenge: textOf(challenge) }
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
  const registration = await generateRegistrationOptions({
    rpName: 'Larder',
    rpID: site.hostname,
    userName: found.email ?? found.name,
    userDisplayName: found.name,
    userID: Uint8Array.from(context.runtime.random.bytes(16)),
    challenge,
    attestationType: 'none',
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  })
  const { name, role, hubs } = found
  return {
    answer: { registration, invited: { name, role, hubs } },
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
  response: object,
): Promise<VerifiedIdentity> {
  const { invitation } = pending
  return invitation === undefined
    ? signedIn(context, site, pending, response as AuthenticationResponseJSON)
    : registered(context, site, { ...pending, invitation }, response as RegistrationResponseJSON)
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

async function registered(
  context: CloudContext,
  site: Site,
  { challenge, invitation }: PendingPasskey & { invitation: string },
  response: RegistrationResponseJSON,
): Promise<VerifiedIdentity> {
  const { db, runtime } = context
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
    const { numInsertedOrUpdatedRows } = await tx.q
      .insertInto('passkeys')
      .values({
        id,
        identity,
        name,
        email,
        public_key: textOf(publicKey),
        counter,
        created_at: runtime.clock.now(),
      })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows === 0n) throw refused('This passkey is registered already.')
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
