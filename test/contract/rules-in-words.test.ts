import { z } from 'zod'
import { expect, test } from 'vitest'
import { itemsOf } from '../../cloud/platform/http/validation-items.ts'
import type { Route } from '../../protocol/contract/route.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { errorOf, openCloud } from '../world/cloud.ts'

interface Text {
  place: string
  schema: z.ZodType
}

/** All text schemas within a schema. */
function textsIn(schema: z.core.$ZodType, place: string): Text[] {
  const { def } = schema as z.ZodType
  if ('innerType' in def) return textsIn(def.innerType as z.core.$ZodType, place)
  if (def.type === 'array') return textsIn((def as z.core.$ZodArrayDef).element, `${place}[]`)
  if (def.type === 'union')
    return (def as z.core.$ZodUnionDef).options.flatMap((option) => textsIn(option, place))
  if (def.type === 'object')
    return Object.entries((def as z.core.$ZodObjectDef).shape).flatMap(([name, field]) =>
      textsIn(field, `${place}.${name}`),
    )
  return def.type === 'string' ? [{ place, schema: schema as z.ZodType }] : []
}

const sent = (Object.entries(routes) as [string, Route][]).flatMap(([id, { params, query, body, form }]) =>
  [params, query, body, form?.fields].flatMap((part) => (part ? textsIn(part, id) : [])),
)
const texts = [...sent, ...textsIn(HardwareDescription, 'hardware')]

const bad = ['', '?', ' ', '2026-02-30', '2026-13-01T25:00:00Z', 'x'.repeat(5000), '99', 'a b@c', '+1']
const PATTERN = /\/\^|\\[dws]|\[[a-z\d^-]+-|\(\?|match pattern|\$\//

test('no error message of a request schema contains a pattern: every rule is in words', () => {
  const wordless = texts.flatMap(({ place, schema }) =>
    bad.flatMap((text) =>
      (schema.safeParse(text, { reportInput: true }).error?.issues ?? [])
        .flatMap((issue) => itemsOf('body', issue))
        .filter(({ msg, ctx }) => PATTERN.test(msg) || JSON.stringify(ctx ?? {}).includes('pattern'))
        .map(({ msg }) => `${place}: ${msg}`),
    ),
  )
  expect(texts.length).toBeGreaterThan(40)
  expect(wordless).toEqual([])
})

const off = { type: 'FIXED_PRICE', discount_pct_or_price: 100 }
const deal = { name: 'Tea', hub_id: 1, triggers: [{ type: 'ALWAYS' }], rewards: [off] }

test.each([
  [
    'a date that does not exist',
    'PATCH',
    '/users/user/profile',
    { date_of_birth: '2024-02-30' },
    'must be a date, YYYY-MM-DD',
  ],
  [
    'a plus sign that came as a space',
    'GET',
    '/users/user/exists/email?email=tag+x@example.org',
    undefined,
    '%2B',
  ],
  [
    'a phone number without a country',
    'PATCH',
    '/users/user/profile',
    { phone_number: '0151' },
    'such as +15550100000',
  ],
  ['a number that is not whole', 'GET', '/hubs/1/products?page=1.5', undefined, 'a whole number'],
] as const)(
  'the value %s is refused by a message that states the rule',
  async (_what, method, path, body, words) => {
    const { call, issuer } = await openCloud()
    const answer = await call(method, path, { token: await issuer.token(), ...(body && { body }) })
    expect(answer.status).toBe(422)
    expect(errorOf(answer).error.message).toContain(words)
    expect(JSON.stringify(errorOf(answer))).not.toMatch(/\^|\\d/)
  },
)

test.each([
  ['an empty list', '/deals/apply-reward', { deal_ids: [], hub_id: 1, cart_items: [] }, 'at least 1 item'],
  ['a list as a body', '/deals/apply-reward', [], 'should be a JSON object'],
  ['a text as an item', '/deals', { ...deal, triggers: ['ALWAYS'] }, 'should be a JSON object'],
  ['a bound that two rules know', '/deals', { ...deal, triggers: [{ type: 'QUANTITY', quantity: 0 }] }, '1'],
  ['an amount below 0', '/deals', { ...deal, rewards: [{ ...off, discount_pct_or_price: -1 }] }, ''],
])('%s is refused by one problem, in words', async (_what, path, body, words) => {
  const { call, key } = await openCloud()
  const answer = await call('POST', `/api/v1${path}`, { key: await key(['promotions:write']), body })
  expect(answer.status).toBe(422)
  const { detail } = errorOf(answer)
  expect(detail).toMatchObject([{ msg: expect.stringContaining(words) as string }])
  expect(JSON.stringify(detail)).not.toMatch(/Too small|Invalid input|>=/)
})

test('no pattern of a request schema takes long to judge a text', () => {
  const long = 200_000
  const attacks = [
    'a'.repeat(long),
    '_'.repeat(long),
    '-'.repeat(long),
    '+1(0)'.repeat(long / 5),
    ' '.repeat(long),
    '1'.repeat(long),
    `a@${'.'.repeat(long)} `,
    `a@${'a.'.repeat(long / 2)} `,
    '1,'.repeat(long / 2),
    '1 , '.repeat(long / 4),
    `en${'-abc'.repeat(long / 4)}!`,
    `en-u${'-aa-abc'.repeat(long / 7)}!`,
    `https://${'a'.repeat(long)} `,
    `2026-01-01T00:00:00.${'0'.repeat(long)}x`,
  ]
  const slow = texts.flatMap(({ place, schema }) =>
    attacks.flatMap((text) => {
      const before = process.cpuUsage()
      schema.safeParse(text)
      const { user, system } = process.cpuUsage(before)
      return user + system > 50_000 ? [`${place}: ${text.slice(0, 20)}… ${(user + system) / 1000} ms`] : []
    }),
  )
  expect(slow).toEqual([])
})
