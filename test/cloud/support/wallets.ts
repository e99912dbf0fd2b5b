import { expect } from 'vitest'
import { deposit } from '../../../cloud/commerce/wallet/deposit.ts'
import type { Queries } from '../../../cloud/platform/store/database.ts'
import type { Shop } from './shop.ts'
import { deliver } from './webhooks.ts'

/** Credits a wallet by card and the sandbox's webhook. */
export async function fillWallet(shop: Shop, userId: number, amountCents: number): Promise<void> {
  await deposit(shop.services, { userId, amountCents, method: 'pm_card_visa' })
  await deliver(shop)
}

export async function balanceOf(shop: Shop, userId: number): Promise<number> {
  const q = shop.context.db.kysely
  const wallet = await q
    .selectFrom('wallets')
    .select('balance')
    .where('user_id', '=', userId)
    .executeTakeFirst()
  return wallet?.balance ?? 0
}

/**
 * I6: every balance is the sum of its entries. Each entry belongs to one completed transaction and contains
 * the balance after it.
 */
export async function walletsAddUp(q: Queries): Promise<void> {
  const wallets = await q.selectFrom('wallets').selectAll().execute()
  const entries = await q.selectFrom('wallet_entries').selectAll().orderBy('id').execute()
  const transactions = await q.selectFrom('wallet_transactions').selectAll().execute()
  const sums = new Map<number, number>()
  for (const { user_id, amount, balance_after } of entries) {
    sums.set(user_id, (sums.get(user_id) ?? 0) + amount)
    expect(balance_after).toBe(sums.get(user_id))
  }
  for (const { user_id, balance, debt } of wallets) {
    expect(balance).toBe(sums.get(user_id) ?? 0)
    const owed = transactions.filter((one) => one.user_id === user_id).map((one) => one.owed)
    expect(debt).toBe(owed.reduce((sum, cents) => sum + cents, 0))
    expect(debt > 0 && balance > 0).toBe(false)
  }
  const moved = new Set(entries.map(({ transaction_id }) => transaction_id))
  expect(moved.size).toBe(entries.length)
  for (const { id, status } of transactions) expect(moved.has(id)).toBe(status === 'completed')
}
