import { expect } from 'vitest'
import { deposit } from '../../../cloud/commerce/ledger/deposit.ts'
import { balanceOf as readBalance } from '../../../cloud/commerce/ledger/ledger.ts'
import type { Queries } from '../../../cloud/platform/store/database.ts'
import { ledgerFaults } from '../../invariants/wallets.ts'
import type { Shop } from '../../world/shop.ts'
import { deliver } from './webhooks.ts'

/** Credits a wallet by card and the sandbox's webhook. */
export async function fillWallet(shop: Shop, userId: number, amountCents: number): Promise<void> {
  await deposit(shop.services, { userId, amountCents, method: 'pm_card_visa' })
  await deliver(shop)
}

export const balanceOf = (shop: Shop, userId: number): Promise<number> =>
  readBalance(shop.context.db.kysely, userId, 'wallet')

/** Completed payments less succeeded refunds, in cents. */
export async function takingsOf(q: Queries): Promise<number> {
  const { paid } = await q
    .selectFrom('payments')
    .select((eb) => eb.fn.sum<number>('amount').as('paid'))
    .where('status', '=', 'completed')
    .executeTakeFirstOrThrow()
  const { back } = await q
    .selectFrom('refunds')
    .select((eb) => eb.fn.sum<number>('amount').as('back'))
    .where('status', '=', 'succeeded')
    .executeTakeFirstOrThrow()
  return paid - back
}

/** I6: every balance is the sum of its entries. */
export async function ledgerAddsUp(q: Queries): Promise<void> {
  const accounts = await q.selectFrom('ledger_accounts').selectAll().execute()
  const entries = await q.selectFrom('ledger_entries').selectAll().execute()
  expect(ledgerFaults(accounts, entries)).toEqual([])
}
