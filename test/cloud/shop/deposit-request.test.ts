import { expect, test } from 'vitest'
import { requestDeposit } from '../../../cloud/shop/page/deposit-request.ts'
import { createClient } from '../../../protocol/client/client.ts'
import { Unanswered } from '../../../protocol/ui/unanswered.ts'

type Answer = 'lost' | [status: number, body: object]
const made: Answer = [200, { transaction_id: 1, client_secret: 's' }]
const refused = (status: number, code: string): Answer => [status, { error: { code, message: code } }]

/** A page of a shop with a service that gives one answer after the other, then the last one again and again. */
function page(...answers: Answer[]) {
  const stored = new Map<string, string>()
  const sent: string[] = []
  let keys = 0
  let forms = 0
  let now = 1_000_000
  const fetch = (address: string, { headers, body }: RequestInit): Promise<Response> => {
    const key = new Headers(headers).get('Idempotency-Key')
    sent.push(
      [address.replace(/.*\//, ''), key, ...Object.values(JSON.parse(body as string) as object)].join(' '),
    )
    const answer = answers.length > 1 ? answers.shift()! : answers[0]!
    if (answer === 'lost') return Promise.reject(new TypeError('connection reset'))
    return Promise.resolve(Response.json(answer[1], { status: answer[0] }))
  }
  const client = createClient({
    baseUrl: 'http://larder.test',
    retry: { tries: 1, mostInUseMs: 0 },
    system: { fetch },
  })
  const storage = {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, text: string) => void stored.set(name, text),
    removeItem: (name: string) => void stored.delete(name),
  }
  const press = async (change: { cents?: number; way?: string; userId?: number; saves?: boolean } = {}) => {
    const wanted = { userId: 1, cents: 1000, way: 'form', saves: false, ...change }
    const card = () => Promise.resolve(`card${++forms}`)
    return requestDeposit(
      { client, unanswered: new Unanswered(storage, () => now), newKey: () => `key${++keys}` },
      { ...wanted, card, onSaved: () => {} },
    )
  }
  const pass = (ms: number) => void (now += ms)
  return { press, sent, stored, pass }
}

test('a deposit without an answer is repeated with its key and its card, also after a reload, until the service answers', async () => {
  const { press, sent, stored } = page('lost', 'lost', made)
  const repeated = []
  for (let times = 0; times < 4; times++) repeated.push((await press()).isRepeated)
  expect(repeated).toEqual([false, true, true, false])
  expect(sent).toEqual([
    'deposit key1 1000 card1',
    'deposit key1 1000 card1',
    'deposit key1 1000 card1',
    'deposit key2 1000 card2',
  ])
  expect(stored.size).toBe(0)
})

test.each<[string, Answer, keys: string]>([
  ['a declined card', refused(402, 'card_declined'), 'key2'],
  ['an unknown card', refused(404, 'payment_method_not_found'), 'key2'],
  ['a service that still executes the deposit', refused(409, 'idempotency_key_in_use'), 'key1'],
  ['a session that has ended', refused(401, 'unauthorized'), 'key1'],
  ['too many calls', refused(429, 'rate_limit_exceeded'), 'key1'],
  ['a processor that does not answer', refused(503, 'processor_unavailable'), 'key1'],
])('after %s the next press has the right key', async (_, answer, key) => {
  const { press, sent } = page(answer)
  await press()
  await press()
  expect(sent[1]).toContain(` ${key} `)
})

test('a deposit without an answer is not repeated after the day for which the service knows its key', async () => {
  const { press, sent, pass } = page('lost')
  await press()
  pass(24 * 3_600_000)
  expect((await press()).isRepeated).toBe(false)
  expect(sent[1]).toContain(' key2 ')
})

test('another amount, another card and another customer are another deposit', async () => {
  const { press, sent } = page('lost')
  await press()
  await press({ cents: 2000 })
  await press({ way: 'pm_1' })
  await press({ userId: 2 })
  expect(new Set(sent.map((each) => each.split(' ')[1])).size).toBe(4)
})

test('a card that is saved with a deposit is saved once', async () => {
  const { press, sent } = page(
    [200, { payment_method_id: 'pm_saved' }],
    'lost',
    [200, { payment_method_id: 'pm_saved' }],
    made,
  )
  await press({ saves: true })
  await press({ saves: false })
  expect(sent).toEqual([
    'save-payment-method key1-card card1',
    'deposit key1 1000 pm_saved',
    'save-payment-method key1-card card1',
    'deposit key1 1000 pm_saved',
  ])
})
