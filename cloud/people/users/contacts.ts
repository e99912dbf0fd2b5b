import type { IdentityClaims } from '../../platform/credentials/credential.ts'
import { rememberCustomer } from '../../commerce/deals/customers.ts'
import type { CloudContext } from '../../platform/context.ts'
import { isUniqueViolation, type Queries, type Tx } from '../../platform/store/database.ts'
import type { Flag } from '../../platform/store/table.ts'

/**
 * A person's contacts. A contact that a token has proved is verified and belongs to one user. Any other
 * contact is the user's own statement: `exists` ignores it, and several users may have it.
 */
export interface Contacts {
  email: string | null
  phone_number: string | null
}

/** Either contact. An e-mail address is in lower case. */
export type Contact = { phone_number: string } | { email: string }

/** The contacts that a token proves. */
export const provenBy = (claims: IdentityClaims): Contacts => ({
  email: claims.emailVerified ? claims.email : null,
  phone_number: claims.phoneNumber,
})

/**
 * Returns which of a user's contacts are verified by its token. Other users lose that verification: numbers
 * and addresses are reassigned over time, so the latest proof counts. Their marks stay.
 */
export async function takeProven(
  tx: Tx,
  context: CloudContext,
  held: Contacts,
  proven: Contacts,
  userId: number | null,
): Promise<{ email_verified: Flag; phone_verified: Flag }> {
  const email = held.email === proven.email ? held.email : null
  const phone = held.phone_number === proven.phone_number ? held.phone_number : null
  if (email !== null) await endProof(tx, context, { column: 'email', flag: 'email_verified' }, email, userId)
  if (phone !== null)
    await endProof(tx, context, { column: 'phone_number', flag: 'phone_verified' }, phone, userId)
  return { email_verified: email === null ? 0 : 1, phone_verified: phone === null ? 0 : 1 }
}

/** The users who had proved a contact, other than `userId`, lose that. */
async function endProof(
  tx: Tx,
  context: CloudContext,
  { column, flag }: { column: keyof Contacts; flag: 'email_verified' | 'phone_verified' },
  contact: string,
  userId: number | null,
): Promise<void> {
  const losers = await tx.q
    .selectFrom('users')
    .selectAll()
    .where(column, '=', contact)
    .where(flag, '=', 1)
    .$if(userId !== null, (users) => users.where('id', '<>', userId!))
    .execute()
  for (const loser of losers) {
    await rememberCustomer(tx, context, loser)
    await tx.q
      .updateTable('users')
      .set({ [flag]: 0 })
      .where('id', '=', loser.id)
      .where(column, '=', contact)
      .execute()
  }
}

const ATTEMPTS = 10

/**
 * Runs a transaction that takes contacts or an identity. If a simultaneous one takes the same first, it runs again.
 */
export async function takingUnique<T>(
  { db }: Pick<CloudContext, 'db'>,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1)
    try {
      return await db.transact(work)
    } catch (error) {
      if (attempt === ATTEMPTS || !isUniqueViolation(error)) throw error
    }
}

/** The user who has proved a contact. */
export const verifiedUserWith = (q: Queries, contact: Contact): Promise<{ id: number } | undefined> =>
  ('email' in contact
    ? q.selectFrom('users').where('email', '=', contact.email).where('email_verified', '=', 1)
    : q.selectFrom('users').where('phone_number', '=', contact.phone_number).where('phone_verified', '=', 1)
  )
    .select('id')
    .executeTakeFirst()
