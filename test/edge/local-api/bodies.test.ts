import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { bodyOf } from '../../../edge/local-api/bodies.ts'
import { LocalError } from '../../../edge/local-api/local-error.ts'

const app = new Hono()
app.onError((error, c) =>
  error instanceof LocalError ? c.json(error.body(), error.status) : c.text('', 500),
)
app.post('/', async (c) => c.json(await bodyOf(c, z.strictObject({ units: z.int() }))))

const post = async (body: string, headers: Record<string, string> = {}) => {
  const answer = await app.request('/', { method: 'POST', headers, body })
  return [answer.status, await answer.json()]
}

test('the local API refuses an encoded body, and accepts a byte order mark', async () => {
  expect(await post('{"units":1}', { 'Content-Encoding': 'gzip' })).toMatchObject([
    415,
    { error: { code: 'unsupported_media_type' } },
  ])
  expect(await post('{"units":1}', { 'Content-Encoding': 'identity' })).toEqual([200, { units: 1 }])
  expect(await post('\uFEFF{"units":1}')).toEqual([200, { units: 1 }])
})
