import type { Insertable, Selectable } from 'kysely'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

/** One ledger of two accounts per user: the wallet in cents, and loyalty points. */
export type LedgerEntry = Selectable<Tables['ledger_entries']>

type NewEntry = Pick<LedgerEntry, 'user_id' | 'account' | 'type' | 'amount'> & Partial<LedgerEntry>

/** Records an entry that is not posted yet. Absent fields are null. */
export function insertEntry(tx: Tx, { runtime }: CloudContext, entry: NewEntry): Promise<LedgerEntry> {
  const now = runtime.clock.now()
  const row: Insertable<Tables['ledger_entries']> = {
    status: 'pending',
    ...entry,
    created_at: now,
    updated_at: now,
  }
  return tx.q.insertInto('ledger_entries').values(row).returningAll().executeTakeFirstOrThrow()
}

/**
 * Posts an entry: the only place that changes a balance. One conditional UPDATE moves it (I6). A wallet
 * with a debt pays it from its balance. Returns undefined, and changes nothing, if the balance is too small.
 */
export async function post(tx: Tx, context: CloudContext, entry: NewEntry): Promise<LedgerEntry | undefined> {
  const { id, user_id, account, amount, owed = 0 } = entry
  await tx.q
    .insertInto('ledger_accounts')
    .values({ user_id, account, balance: 0, debt: 0, entries: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const moved = await tx.q
    .updateTable('ledger_accounts')
    .set((eb) => ({
      balance: eb('balance', '+', amount),
      debt: eb('debt', '+', owed),
      entries: eb('entries', '+', 1),
    }))
    .where('user_id', '=', user_id)
    .where('account', '=', account)
    .where((eb) => eb(eb('balance', '+', amount), '>=', 0))
    .returning(['balance', 'debt', 'entries'])
    .executeTakeFirst()
  if (!moved) return undefined
  const posted = { status: 'completed', position: moved.entries, balance_after: moved.balance } as const
  const row =
    id === undefined
      ? await insertEntry(tx, context, { ...entry, ...posted })
      : await tx.q
          .updateTable('ledger_entries')
          .set({ ...posted, updated_at: context.runtime.clock.now() })
          .where('id', '=', id)
          .returningAll()
          .executeTakeFirstOrThrow()
  const paid = Math.min(moved.balance, moved.debt)
  if (paid > 0) await post(tx, context, { user_id, account, type: 'adjustment', amount: -paid, owed: -paid })
  return row
}

/** A user's cents or points; 0 before the first entry. */
export async function balanceOf(
  q: Queries,
  userId: number,
  account: LedgerEntry['account'],
): Promise<number> {
  const row = await q
    .selectFrom('ledger_accounts')
    .select('balance')
    .where('user_id', '=', userId)
    .where('account', '=', account)
    .executeTakeFirst()
  return row?.balance ?? 0
}
