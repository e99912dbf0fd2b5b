import { expect, test } from 'vitest'
import type { Evidence } from '../invariants/evidence.ts'
import { moneyAddsUp } from '../invariants/money.ts'

const intent = { id: 'pi_1', idempotency_key: 'pay:1.1', amount: 500, status: 'succeeded' }

/** A seed in which the books have lost a payment of 500 cents. */
const evidence = (orphans: object[], refunded = 0): Evidence =>
  ({
    lost: new Set(['pay:1.1']),
    watched: {},
    cloud: {
      payments: [],
      refunds: [],
      walletTransactions: [],
      allPayments: new Set(),
      intents: [intent],
      processorDisputes: [],
      processorRefunds: [{ intent_id: 'pi_1', amount: refunded, status: 'succeeded' }],
      orphans,
    },
  }) as unknown as Evidence

test.for<[string, Evidence, number]>([
  ['nobody knows of', evidence([]), 1],
  ['the cloud knows of and tells nobody', evidence([{ ref: 'pi_1', state: 'open', isTold: false }]), 1],
  ['is refunded in part', evidence([], 499), 1],
  ['has an open alarm', evidence([{ ref: 'pi_1', state: 'open', isTold: true }]), 0],
  ['is refunded', evidence([{ ref: 'pi_1', state: 'refunded', isTold: false }], 500), 0],
])('a payment that the books have lost and that %s', ([, found, violations]) => {
  expect(moneyAddsUp(found)).toHaveLength(violations)
})
