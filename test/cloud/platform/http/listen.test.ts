import { connect, Server, type Socket } from 'node:net'
import { Hono } from 'hono'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { addressReader, listen } from '../../../../cloud/platform/http/listen.ts'
import { defaultHttpSettings } from '../../../../cloud/platform/settings/settings.ts'
import type { ServerBounds } from '../../../../protocol/model/bound-server.ts'

const { clock } = systemRuntime()

afterEach(() => vi.restoreAllMocks())

async function serve(trustedProxies: number, bounds: Partial<ServerBounds> = {}) {
  const read = addressReader(trustedProxies)
  const app = new Hono().get('/', (c) => c.text(read(c)))
  const server = await listen(app, {
    host: '127.0.0.1',
    port: 0,
    clock,
    bounds: { ...defaultHttpSettings, ...bounds },
  })
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

test('a connection that the system has no means to accept ends nothing', async () => {
  const listening = vi.spyOn(Server.prototype, 'listen')
  const { address } = await serve(0)
  const [server] = listening.mock.contexts as Server[]
  for (let count = 0; count < 3; count++) server!.emit('error', new Error('accept ENOBUFS'))
  expect(await address()).toBe('127.0.0.1')
})

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
  await expect(
    listen(app, { host: '127.0.0.1', port, clock, bounds: defaultHttpSettings }),
  ).rejects.toMatchObject({ code: 'EADDRINUSE' })
})

/** A connection that says so much and no more; resolves with all that came when it ends. */
function stranger(port: number, text: string): { socket: Socket; ended: Promise<string> } {
  const socket = connect(port, '127.0.0.1', () => void socket.write(text))
  onTestFinished(() => void socket.destroy())
  let heard = ''
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
  const ended = new Promise<string>((done) => {
    socket.on('error', () => {})
    socket.on('close', () => done(heard))
  })
  return { socket, ended }
}

test('who never sends the end of the headers is cut off', { timeout: 20_000 }, async () => {
  const { port } = await serve(0, { headersTimeoutMs: 200 })
  const silent = stranger(port, '')
  const slow = stranger(port, 'GET / HTTP/1.1\r\nHost: larder\r\nX-Slow: ')
  expect(await silent.ended).toMatch(/^(HTTP\/1.1 408|$)/)
  expect(await slow.ended).toMatch(/^HTTP\/1.1 408/)
})

test('an answer ends the connection of a request whose body never comes, whatever its method', async () => {
  const { port } = await serve(0)
  for (const method of ['GET', 'POST']) {
    const { ended } = stranger(
      port,
      `${method} / HTTP/1.1\r\nHost: larder\r\nContent-Length: 1000000\r\n\r\nabc`,
    )
    expect(await ended).toMatch(method === 'GET' ? /^HTTP\/1.1 200/ : /^HTTP\/1.1 404/)
  }
})

test('beyond the bound on connections the one goes that has waited longest, and a caller is served', async () => {
  const { port, address } = await serve(0, { maxConnections: 3 })
  const idle = [1, 2, 3].map(() => stranger(port, 'GET / HTTP/1.1\r\n'))
  await Promise.all(idle.map(({ socket }) => new Promise((done) => socket.once('connect', done))))
  expect(await address()).toBe('127.0.0.1')
  expect(await idle[0]!.ended).toBe('')
})
