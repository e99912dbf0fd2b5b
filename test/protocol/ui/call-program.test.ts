import { afterEach, expect, test, vi } from 'vitest'
import { call, callProgram, CallError, sentenceOf } from '../../../protocol/ui/call-program.ts'

afterEach(() => void vi.unstubAllGlobals())

const answer = (status: number, body: string | null, type = 'text/html') =>
  vi.stubGlobal('fetch', () =>
    Promise.resolve(new Response(body, { status, headers: { 'Content-Type': type } })),
  )
const NO_ANSWER = 'It does not answer: is it running, and are you on its network?'

test('a page in place of an answer, as of a network that asks for a sign-in, does not confirm a call', async () => {
  answer(200, '<html>Welcome to our network</html>')
  await expect(call('POST', 'api/stock/count', {})).rejects.toThrow(NO_ANSWER)
  answer(200, '<html>Welcome</html>', 'application/json')
  await expect(call('GET', 'api/session')).rejects.toThrow(NO_ANSWER)
})

test('a failed call has the status, sentence and details of the answer, or the status of a proxy', async () => {
  const error = { code: 'refused', message: 'The hub refused.', details: { reason: 'nack' } }
  answer(409, JSON.stringify({ error }), 'application/json')
  const refused = await call('POST', 'api/open', {}).catch((failure: unknown) => failure)
  expect(refused).toBeInstanceOf(CallError)
  expect(refused).toMatchObject({ status: 409, message: error.message, details: error.details })
  answer(502, '<html>Bad Gateway</html>')
  await expect(call('GET', 'api/session')).rejects.toMatchObject({ status: 502, message: 'It answers 502.' })
})

test('a call ends when the program does not answer', async () => {
  vi.stubGlobal(
    'fetch',
    (_address: string, { signal }: RequestInit) =>
      new Promise((_resolve, reject) =>
        signal!.addEventListener('abort', () => reject(signal!.reason as Error)),
      ),
  )
  const result = await callProgram('session', { method: 'GET', timeoutMs: 10 })
  expect(result).toMatchObject({ ok: false, error: { code: 'timeout', status: 0 } })
})

const json = (body: object) => [JSON.stringify(body), 'application/json'] as const
test.each([
  ['a page of a proxy', 502, ['<html>'], 'The service answers 502.'],
  ['a page with status 200', 200, ['<html>'], 'The service does not answer.'],
  ['JSON of a proxy', 502, json({ message: 'x' }), 'The service answers 502.'],
  [
    'a refusal',
    403,
    json({ error: { code: 'forbidden', message: 'It is your only passkey.' } }),
    'It is your only passkey.',
  ],
] as const)('a call that gets %s fails with a sentence', async (_name, status, [body, type], sentence) => {
  answer(status, body, type)
  const result = await callProgram('session', { method: 'GET' })
  expect(result.ok || sentenceOf(result.error, 'The service')).toBe(sentence)
})

test('an empty answer is a success', async () => {
  answer(204, null)
  expect(await callProgram('session', { method: 'DELETE' })).toMatchObject({ ok: true, data: undefined })
})
