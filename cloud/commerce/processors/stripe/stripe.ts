import type { CardProcessor } from '../processor.ts'
import { openAccount, type StripeOptions } from './account.ts'
import { attachMethod, createCustomer, createSetupIntent, detachMethod, removeCustomer } from './customers.ts'
import { readEvent } from './events.ts'
import { cancelIntent, confirmIntent, createIntent, readIntent } from './intents.ts'
import { createRefund, readRefund } from './refunds.ts'

/**
 * Stripe, through its own SDK. Intents are confirmed as they are made, with the customer present; redirects to banks'
 * pages are off. Everything made carries the installation's name and our ids in its metadata.
 */
export function createStripe(options: StripeOptions): CardProcessor {
  const account = openAccount(options)
  return {
    name: 'stripe',
    // A method's id; wallets may also give a token of it.
    knowsMethod: (method, type) => (type === 'card' ? /^(pm|card)_\w+$/ : /^(pm|tok)_\w+$/).test(method),
    createIntent: (request) => createIntent(account, request),
    readIntent: (ref) => readIntent(account, ref),
    confirmIntent: (ref) => confirmIntent(account, ref),
    cancelIntent: (ref) => cancelIntent(account, ref),
    createRefund: (request) => createRefund(account, request),
    readRefund: (ref) => readRefund(account, ref),
    createCustomer: (request) => createCustomer(account, request),
    removeCustomer: (ref) => removeCustomer(account, ref),
    createSetupIntent: (request) => createSetupIntent(account, request),
    attachMethod: (request) => attachMethod(account, request),
    detachMethod: ({ method }) => detachMethod(account, method),
    readEvent: (body) => readEvent(account.installation, body),
  }
}
