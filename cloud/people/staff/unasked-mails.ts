import type { CloudContext } from '../../platform/context.ts'
import { digestOf } from '../../platform/credentials/secrets.ts'
import type { Tx } from '../../platform/store/database.ts'

/** The time in which the mails to one address, and those of one owner, are counted. */
export const UNASKED_WINDOW_MS = 86_400_000

/**
 * Counts a mail to an address before it is sent. The holder has not agreed to mails, so their number is limited. The caller
 * has locked the owner. Returns whether the mail may be sent.
 */
export async function countUnasked(
  tx: Tx,
  { runtime, settings }: CloudContext,
  mail: { ownerId: number; email: string },
): Promise<boolean> {
  const now = runtime.clock.now()
  const address = digestOf(mail.email.toLowerCase())
  const sent = async (column: 'owner_id' | 'address', value: number | string): Promise<number> => {
    const { count } = await tx.q
      .selectFrom('unasked_mails')
      .select((eb) => eb.fn.countAll().as('count'))
      .where('sent_at', '>', now - UNASKED_WINDOW_MS)
      .where(column, '=', value)
      .executeTakeFirstOrThrow()
    return Number(count)
  }
  if ((await sent('owner_id', mail.ownerId)) >= settings.unaskedMailsPerOwner) return false
  if ((await sent('address', address)) >= settings.unaskedMailsPerAddress) return false
  await tx.q.insertInto('unasked_mails').values({ owner_id: mail.ownerId, address, sent_at: now }).execute()
  return true
}
