import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { post } from './ledger.ts'

/** The cause of the entry that brings a user's account to its new holder. The wallet's entry also names the holder. */
const GUEST = 'guest '

/** Whether an entry moved the money of a guest to the account in which the guest signed in. */
export const isFromGuest = (cause: string | null): boolean => cause?.startsWith(GUEST) === true

/**
 * Moves wallet and points of a user to another user, by one entry in each of the two accounts. A deposit without an
 * outcome is not posted yet, so it moves itself. Call it under the locks of both users, once for each `from`.
 */
export async function moveLedger(
  tx: Tx,
  context: CloudContext,
  { from, to }: { from: number; to: number },
): Promise<void> {
  await tx.q
    .updateTable('ledger_entries')
    .set({ user_id: to })
    .where('user_id', '=', from)
    .where('position', 'is', null)
    .execute()
  const accounts = await tx
    .forUpdate(tx.q.selectFrom('ledger_accounts').selectAll().where('user_id', '=', from).orderBy('account'))
    .execute()
  for (const { account, balance, debt } of accounts) {
    const cents_per_point = account === 'points' ? context.settings.loyaltyCentsPerPoint : null
    const entry = { account, type: 'adjustment', cents_per_point } as const
    await post(tx, context, { ...entry, user_id: from, amount: 0 - balance, owed: 0 - debt, cause: null })
    await post(tx, context, { ...entry, user_id: to, amount: balance, owed: debt, cause: `${GUEST}${from}` })
  }
}

/** The guests whose wallet and points came to a user. Their posted entries stay with them. */
export async function formerGuests(q: Queries, userId: number): Promise<number[]> {
  const rows = await q
    .selectFrom('ledger_entries')
    .select('cause')
    .distinct()
    .where('user_id', '=', userId)
    .where('cause', 'like', `${GUEST}%`)
    .execute()
  return rows.map(({ cause }) => Number(cause!.slice(GUEST.length)))
}

/** Who holds the wallet into which a user's deposit was credited. Locks the user, so that the wallet does not move. */
export async function walletHolder(tx: Tx, userId: number): Promise<number> {
  await tx.forUpdate(tx.q.selectFrom('users').select('id').where('id', '=', userId)).execute()
  const moved = await tx.q
    .selectFrom('ledger_entries')
    .select('user_id')
    .where('account', '=', 'wallet')
    .where('cause', '=', `${GUEST}${userId}`)
    .executeTakeFirst()
  return moved?.user_id ?? userId
}
