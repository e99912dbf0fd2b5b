import { expect, test } from 'vitest'
import { isSigned, signPayload } from '../../../../cloud/platform/http/signature.ts'

test('during a rotation only an event signed by either secret is accepted', () => {
  const [body, nowMs, toleranceMs] = ['{"id":"evt_1"}', 1_767_225_600_000, 300_000]
  const secret = ['new secret', 'former secret']
  for (const each of secret)
    expect(isSigned(body, signPayload(body, each, nowMs), { secret, nowMs, toleranceMs })).toBe(true)
  expect(isSigned(body, signPayload(body, 'other', nowMs), { secret, nowMs, toleranceMs })).toBe(false)
  const formerOnly = signPayload(body, 'former secret', nowMs)
  expect(isSigned(body, formerOnly, { secret: 'new secret', nowMs, toleranceMs })).toBe(false)
})
