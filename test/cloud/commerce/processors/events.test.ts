import { expect, test } from 'vitest'
import { ProcessorEvent } from '../../../../cloud/commerce/payments/webhook.ts'
import { readEvent } from '../../../../cloud/commerce/processors/stripe/stripe.ts'

const optional = [
  'status',
  'client_secret',
  'payment_method',
  'last_payment_error',
  'amount',
  'payment_intent',
  'reason',
  'failure_reason',
  'metadata',
  'charge',
]
const types = ['payment_intent.succeeded', 'refund.updated', 'charge.dispute.created']
const values = [
  null,
  undefined,
  7,
  1.5,
  'x',
  true,
  [],
  {},
  [null],
  { id: null },
  { decline_code: null, code: 7 },
]

test.each(types)('an event %s is read for any type of its optional fields', (type) => {
  for (const name of optional)
    for (const value of values) {
      const body = { id: 'evt_1', type, created: null, data: { object: { id: 'obj_1', [name]: value } } }
      const event = ProcessorEvent.parse(readEvent('mark', body))
      expect([name, value, event.id, event.data.object.id]).toEqual([name, value, 'evt_1', 'obj_1'])
    }
})

test('the payment of another installation is never used, for any other content of an event', () => {
  for (const value of values)
    for (const name of optional.filter((each) => each !== 'metadata')) {
      const metadata = { larder: 'other', payment_id: '1.5' }
      const object = { id: 'pi_1', metadata, [name]: value }
      const body = { id: 'evt_1', type: 'payment_intent.succeeded', data: { object } }
      expect(ProcessorEvent.parse(readEvent('mark', body)).data.object.metadata).toEqual({})
    }
})
