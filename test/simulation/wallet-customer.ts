import { payFromWallet } from '../../cloud/commerce/payments/pay.ts'
import { deposit } from '../../cloud/commerce/ledger/deposit.ts'
import { retryCall, type CustomerWorld } from './customer-calls.ts'

const METHODS = ['pm_card_visa', 'pm_card_chargeDeclined', 'pm_card_authenticationRequired', null] as const

/** Credits a wallet, under one key for all attempts. */
export async function topUp(world: CustomerWorld, userId: number): Promise<void> {
  const { chance, coverage } = world
  const request = {
    userId,
    amountCents: chance.between(100, 3000),
    method: chance.happens(0.6) ? 'pm_card_visa' : chance.pick(METHODS),
    requestKey: `deposit-${chance.between(1, 1_000_000_000)}`,
  }
  const answer = await retryCall(world, (cloud) => deposit(cloud, request))
  coverage.hit(`customer deposits: ${answer.kind === 'refused' ? answer.code : answer.kind}`)
}

/** Returns true if the wallet paid or another obstacle exists, and false if its balance is too low. */
export async function debit(
  world: CustomerWorld,
  key: { userId: number; orderId: number },
): Promise<{ isDecided: boolean; ended?: string }> {
  const answer = await retryCall(world, (cloud) => payFromWallet(cloud, key))
  const said = answer.kind === 'refused' ? answer.code : answer.kind
  world.coverage.hit(`customer debits: ${said}`)
  if (answer.kind === 'ok') return { isDecided: true }
  return said === 'insufficient_funds' ? { isDecided: false } : { isDecided: true, ended: `debit ${said}` }
}
