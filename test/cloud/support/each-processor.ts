import { afterAll, beforeAll } from 'vitest'
import { openStripeBank } from './bank.ts'
import { onEachDatabase, type OpenDatabase } from '../../world/database.ts'
import { openShop, type Shop, type ShopOptions } from '../../world/shop.ts'
import { startStripeServer, type StripeServer } from './stripe/server.ts'

export type OpenBankShop = (options?: ShopOptions) => Promise<Shop>

/**
 * Declares a suite once for each card processor on each database. The previous shop of the same suite is
 * deleted then.
 */
export function onEachProcessor(
  name: string,
  suite: (open: OpenBankShop, stripe: () => StripeServer | undefined) => void,
): void {
  onEachDatabase(`${name}, by the sandbox`, (open) =>
    suite(
      async (options = {}) => openShop(await open(options), options),
      () => undefined,
    ),
  )
  onEachDatabase(`${name}, by Stripe`, (open) => onStripe(open, suite))
}

/** Declares a suite only for Stripe. */
export function onStripeShop(
  name: string,
  suite: (open: OpenBankShop, stripe: () => StripeServer) => void,
): void {
  onEachDatabase(`${name}, by Stripe`, (open) => onStripe(open, suite))
}

function onStripe(open: OpenDatabase, suite: (open: OpenBankShop, stripe: () => StripeServer) => void): void {
  let server: StripeServer
  beforeAll(async () => {
    server = await startStripeServer()
  })
  afterAll(() => server.close())
  suite(
    async (options = {}) => openShop(await open(options), { ...options, openBank: openStripeBank(server) }),
    () => server,
  )
}
