import { sql } from 'kysely'
import { MailUnconfirmed, type Mail, type SendMail } from '../../operations/alarms/mail.ts'
import type { CloudContext } from '../../platform/context.ts'
import { digestOf } from '../../platform/credentials/secrets.ts'
import { ADDRESS_LOCKS } from '../../platform/store/advisory-locks.ts'
import type { Tx } from '../../platform/store/database.ts'

/** The time in which the mails to one address, and those of one owner, are counted. */
export const UNASKED_WINDOW_MS = 86_400_000
/** The time in which the mails of one owner that the mail server has not accepted are counted. */
const REFUSED_WINDOW_MS = 3_600_000
/** Stands for the address of a mail that the mail server has not accepted. */
const REFUSED = 'refused'

/** The limit that a mail has reached, and a sentence about it. */
export interface UnaskedLimit {
  limit: number
  why: string
}

/**
 * Counts a mail to an address before it is sent. The holder has not agreed to mails, so their number is limited. The caller
 * has locked the owner. Returns the id of the mail in `unasked_mails`, or the limit that forbids it.
 */
export async function countUnasked(
  tx: Tx,
  { runtime, settings }: CloudContext,
  { ownerId: owner_id, email }: { ownerId: number; email: string },
): Promise<number | UnaskedLimit> {
  const now = runtime.clock.now()
  const address = digestOf(email.toLowerCase())
  // Two owners could take the last mail of an address.
  if (tx.kind === 'postgres')
    await sql`select pg_advisory_xact_lock(${ADDRESS_LOCKS}::int, hashtext(${address}))`.execute(tx.q)
  const mails = tx.q.selectFrom('unasked_mails').select((eb) => eb.fn.countAll().as('count'))
  const ofDay = mails.where('sent_at', '>', now - UNASKED_WINDOW_MS)
  const ofOwner = ofDay.where('owner_id', '=', owner_id).where('address', '!=', REFUSED)
  const toAddress = ofDay.where('address', '=', address)
  const refused = mails
    .where('sent_at', '>', now - REFUSED_WINDOW_MS)
    .where('owner_id', '=', owner_id)
    .where('address', '=', REFUSED)
  const { unaskedMailsPerOwner: perOwner, unaskedMailsPerAddress: perAddress } = settings
  for (const [counted, limit, why] of [
    [
      ofOwner,
      perOwner,
      `The owner has sent ${perOwner} mails to people who have not agreed to them, within 24 hours. Try again tomorrow.`,
    ],
    [
      toAddress,
      perAddress,
      `This address received ${perAddress} such mails within 24 hours. Try again tomorrow.`,
    ],
    [
      refused,
      perOwner,
      `The mail server has refused ${perOwner} mails of the owner within an hour. Check it, and try again in an hour.`,
    ],
  ] as const)
    if (Number((await counted.executeTakeFirstOrThrow()).count) >= limit) return { limit, why }
  const { id } = await tx.q
    .insertInto('unasked_mails')
    .values({ owner_id, address, sent_at: now })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/**
 * Sends a counted mail, after the transaction. Rejects if the mail server has not accepted it. Such a mail no longer counts for
 * its address and the day; a mail that the server may have accepted does.
 */
export async function sendUnasked(
  { db }: CloudContext,
  sendMail: SendMail,
  { id, mail }: { id: number; mail: Mail },
): Promise<void> {
  try {
    await sendMail(mail)
  } catch (error) {
    if (!(error instanceof MailUnconfirmed))
      await db.kysely.updateTable('unasked_mails').set({ address: REFUSED }).where('id', '=', id).execute()
    throw error
  }
}
