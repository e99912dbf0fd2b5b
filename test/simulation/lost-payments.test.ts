import { expect, test } from 'vitest'
import type { Evidence } from '../invariants/evidence.ts'
import { moneyAddsUp } from '../invariants/money.ts'

const intent = { id: 'pi_1', idempotency_key: 'payment:1.1', amount: 500, status: 'succeeded' }

/** Evidence of a payment of 500 cents that the books have lost. */
const evidence = (orphans: object[], refunded = 0, metadata = '{}'): Evidence =>
  ({
    lost: new Set(['payment:1.1']),
    watched: {},
    cloud: {
      payments: [],
      refunds: [],
      ledgerEntries: [],
      allPayments: new Set(),
      intents: [intent],
      processorDisputes: [],
      processorRefunds: [{ intent_id: 'pi_1', amount: refunded, status: 'succeeded', metadata }],
      orphans,
    },
  }) as unknown as Evidence

test.for<[string, Evidence, number]>([
  ['is known to no part', evidence([]), 1],
  ['is known to the cloud and has no alarm', evidence([{ ref: 'pi_1', state: 'open', isTold: false }]), 1],
  ['is refunded in part', evidence([], 499), 1],
  ['has an open alarm', evidence([{ ref: 'pi_1', state: 'open', isTold: true }]), 0],
  ['is refunded', evidence([{ ref: 'pi_1', state: 'refunded', isTold: false }], 500), 0],
])('the invariant of money judges a lost payment that %s', ([, found, violations]) => {
  expect(moneyAddsUp(found)).toHaveLength(violations)
})

test('the invariant of money finds a refund that the processor has paid twice', () => {
  const found = evidence([], 500, '{"refund_id":"7.1"}')
  expect(moneyAddsUp(found)).toEqual([])
  const twice = [...found.cloud.processorRefunds, ...found.cloud.processorRefunds]
  expect(moneyAddsUp({ ...found, cloud: { ...found.cloud, processorRefunds: twice } })).toEqual([
    { invariant: 'I6', text: 'the processor has paid refund 7.1 2 times' },
  ])
})
