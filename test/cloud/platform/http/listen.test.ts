import { Hono } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { addressReader, listen } from '../../../../cloud/platform/http/listen.ts'
import type { RequestState } from '../../../../cloud/platform/http/answer.ts'

const { clock } = systemRuntime()

async function serve(trustedProxies: number) {
  const read = addressReader(trustedProxies)
  const app = new Hono<RequestState>().get('/', (c) => c.text(read(c)))
  const server = await listen(app, { host: '127.0.0.1', port: 0, clock })
  onTestFinished(() => server.close(0))
  return {
    app,
    port: server.port,
    address: async (forwarded?: string) => {
      const headers = forwarded === undefined ? {} : { 'X-Forwarded-For': forwarded }
      return (await fetch(`http://127.0.0.1:${server.port}/`, { headers })).text()
    },
  }
}

test("a caller's address is its socket's, whatever it says", async () => {
  const { address } = await serve(0)
  expect(await address()).toBe('127.0.0.1')
  expect(await address('203.0.113.9')).toBe('127.0.0.1')
})

test('behind trusted proxies it is what they wrote, and nothing before that', async () => {
  const one = await serve(1)
  expect(await one.address('198.51.100.1, 203.0.113.9')).toBe('203.0.113.9')
  expect(await one.address()).toBe('127.0.0.1')
  const two = await serve(2)
  expect(await two.address('10.0.0.1, 198.51.100.1, 203.0.113.9')).toBe('198.51.100.1')
  expect(await two.address('203.0.113.9')).toBe('127.0.0.1')
})

test('a port in use is an error that can be told', async () => {
  const { app, port } = await serve(0)
  await expect(listen(app, { host: '127.0.0.1', port, clock })).rejects.toMatchObject({ code: 'EADDRINUSE' })
})
