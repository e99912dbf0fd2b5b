import { connect, Server, type Socket } from 'node:net'
import { Hono } from 'hono'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { ErrorBody } from '../../../../protocol/contract/errors.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { addressReader, listen, untrustedProxyWarning } from '../../../../cloud/platform/http/listen.ts'
import { defaultLimits } from '../../../../cloud/platform/settings/limits.ts'
import { virtualClock } from '../../../world/clock.ts'
import type { ServerBounds } from '../../../../protocol/model/bound-server.ts'

const runtime = systemRuntime()

afterEach(() => vi.restoreAllMocks())

async function serve(trustedProxies: number, bounds: Partial<ServerBounds> = {}) {
  const read = addressReader(trustedProxies)
  const app = new Hono().get('/', (c) => c.text(read(c)))
  const server = await listen(app, {
    host: '127.0.0.1',
    port: 0,
    runtime,
    trustedProxies,
    bounds: { ...defaultLimits.http, ...bounds },
  })
  onTestFinished(() => server.close(0))
  return {
    app,
    port: server.port,
    drain: () => server.drain(),
    address: async (forwarded?: string) => {
      const headers = forwarded === undefined ? {} : { 'X-Forwarded-For': forwarded }
      return (await fetch(`http://127.0.0.1:${server.port}/`, { headers })).text()
    },
  }
}

test('a connection that the system cannot accept does not stop the server', async () => {
  const listening = vi.spyOn(Server.prototype, 'listen')
  const { address } = await serve(0)
  const [server] = listening.mock.contexts as Server[]
  for (let count = 0; count < 3; count++) server!.emit('error', new Error('accept ENOBUFS'))
  expect(await address()).toBe('127.0.0.1')
})

test('a caller’s address is that of its socket, whatever its headers claim', async () => {
  const { address } = await serve(0)
  expect(await address()).toBe('127.0.0.1')
  expect(await address('203.0.113.9')).toBe('127.0.0.1')
})

test('behind trusted proxies a caller’s address is the address that they wrote, and earlier entries do not count', async () => {
  const one = await serve(1)
  expect(await one.address('198.51.100.1, 203.0.113.9')).toBe('203.0.113.9')
  expect(await one.address()).toBe('127.0.0.1')
  const two = await serve(2)
  expect(await two.address('10.0.0.1, 198.51.100.1, 203.0.113.9')).toBe('198.51.100.1')
  expect(await two.address('203.0.113.9')).toBe('127.0.0.1')
})

test('a port in use is reported as a readable error', async () => {
  const { app, port } = await serve(0)
  await expect(
    listen(app, { host: '127.0.0.1', port, runtime, bounds: defaultLimits.http }),
  ).rejects.toMatchObject({ code: 'EADDRINUSE' })
})

/** A connection that sends a text and then nothing; resolves with all received data at its end. */
function stranger(
  port: number,
  text: string,
  localAddress = '127.0.0.1',
): { socket: Socket; ended: Promise<string> } {
  const socket = connect({ port, host: '127.0.0.1', localAddress }, () => void socket.write(text))
  onTestFinished(() => void socket.destroy())
  let heard = ''
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
  const ended = new Promise<string>((done) => {
    socket.on('error', () => {})
    socket.on('close', () => done(heard))
  })
  return { socket, ended }
}

test(
  'a connection without complete headers in time ends with the JSON error',
  { timeout: 20_000 },
  async () => {
    const { port } = await serve(0, { headersTimeoutMs: 200 })
    const silent = stranger(port, '')
    const slow = stranger(port, 'GET / HTTP/1.1\r\nHost: larder\r\nX-Slow: ')
    expect(await silent.ended).toMatch(/^(HTTP\/1.1 408|$)/)
    const answer = await slow.ended
    expect(answer).toMatch(/^HTTP\/1.1 408/)
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({
      error: { code: 'request_timeout' },
    })
  },
)

test('an answer closes the connection of a request with an unfinished body, for any method', async () => {
  const { port } = await serve(0)
  for (const method of ['GET', 'POST']) {
    const { ended } = stranger(
      port,
      `${method} / HTTP/1.1\r\nHost: larder\r\nContent-Length: 1000000\r\n\r\nabc`,
    )
    expect(await ended).toMatch(method === 'GET' ? /^HTTP\/1.1 200/ : /^HTTP\/1.1 404/)
  }
})

test('beyond the limit of connections the longest waiting connection is closed, and a new caller is served', async () => {
  const { port, address } = await serve(0, { maxConnections: 3 })
  const idle = [1, 2, 3].map(() => stranger(port, 'GET / HTTP/1.1\r\n'))
  await Promise.all(idle.map(({ socket }) => new Promise((done) => socket.once('connect', done))))
  expect(await address()).toBe('127.0.0.1')
  expect(await idle[0]!.ended).toBe('')
})

test.each([
  ['HTTP/1.0 without Host', 'GET / HTTP/1.0\r\n\r\n', 200, undefined],
  ['HTTP/1.0 with Host', 'GET / HTTP/1.0\r\nHost: larder\r\n\r\n', 200, undefined],
  ['HTTP/1.0 with an empty Host', 'GET / HTTP/1.0\r\nHost:\r\n\r\n', 200, undefined],
  [
    'an IPv6 Host with a port',
    'GET / HTTP/1.1\r\nHost: [::1]:8080\r\nConnection: close\r\n\r\n',
    200,
    undefined,
  ],
  [
    'an absolute target',
    'GET http://larder/ HTTP/1.1\r\nHost: larder\r\nConnection: close\r\n\r\n',
    200,
    undefined,
  ],
  [
    'headers of 31 kB',
    `GET / HTTP/1.1\r\nHost: l\r\nConnection: close\r\nX: ${'a'.repeat(31_000)}\r\n\r\n`,
    200,
    undefined,
  ],
  [
    'headers of 33 KiB',
    `GET / HTTP/1.1\r\nHost: l\r\nX: ${'a'.repeat(33 * 1024)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  ['an address of 40 kB', `GET /${'a'.repeat(40_000)} HTTP/1.1\r\nHost: l\r\n\r\n`, 431, 'headers_too_large'],
  ['HTTP/1.1 without Host', 'GET / HTTP/1.1\r\n\r\n', 400, 'bad_request'],
  ['two Host lines', 'GET / HTTP/1.1\r\nHost: larder\r\nhost: larder\r\n\r\n', 400, 'bad_request'],
  ['two Host lines of HTTP/1.0', 'GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n', 400, 'bad_request'],
  ['a Host that is no host', 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n', 400, 'bad_request'],
  ['a Host with a path', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n', 400, 'bad_request'],
  ['a Host with a user', 'GET / HTTP/1.1\r\nHost: u@a\r\n\r\n', 400, 'bad_request'],
  ['a target without a slash', 'OPTIONS * HTTP/1.1\r\nHost: larder\r\n\r\n', 400, 'bad_request'],
  ['a target with a backslash', 'GET /\\ HTTP/1.1\r\nHost: larder\r\n\r\n', 400, 'bad_request'],
  ['an unknown method', 'BREW / HTTP/1.1\r\nHost: larder\r\n\r\n', 400, 'bad_request'],
  ['a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: larder\r\n\r\n', 400, 'bad_request'],
  ['a bad header', 'GET / HTTP/1.1\r\nHost: larder\r\nbad header\r\n\r\n', 400, 'bad_request'],
  [
    'two lengths',
    'POST / HTTP/1.1\r\nHost: l\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    400,
    'bad_request',
  ],
  [
    'another expectation',
    'GET / HTTP/1.1\r\nHost: larder\r\nExpect: banana\r\n\r\n',
    417,
    'expectation_failed',
  ],
])('the server answers a request with %s', { timeout: 10_000 }, async (_name, text, status, code) => {
  const { port } = await serve(0)
  const answer = await stranger(port, text).ended
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status}`))
  if (code === undefined) return
  expect(answer).toMatch(/\r\nConnection: close\r\n/i)
  const body = ErrorBody.parse(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))))
  expect(body.error.code).toBe(code)
  expect(body.detail).toBe(body.error.message)
  expect(answer).toContain(`X-Request-Id: ${body.request_id}\r\n`)
})

/** Connections that hold a request with an endless body. Resolves when the server works on all of them. */
async function atWork({ app, port }: Awaited<ReturnType<typeof serve>>, count: number) {
  let begun = 0
  app.post('/slow', async (c) => {
    begun += 1
    return c.text(await c.req.text())
  })
  const head = 'POST /slow HTTP/1.1\r\nHost: larder\r\nContent-Length: 500\r\n\r\na'
  const all = []
  for (let n = 1; n <= count; n += 1) {
    all.push(stranger(port, head))
    await vi.waitFor(() => expect(begun).toBe(n))
  }
  return all
}

test('a network at its share loses its oldest connections, also busy ones, to a new connection', async () => {
  const server = await serve(0, { maxConnections: 100, connectionsPerNetwork: 4 })
  const slow = await atWork(server, 4)
  for (let call = 0; call < 3; call += 1) expect(await server.address()).toBe('127.0.0.1')
  expect(await slow[0]!.ended).toBe('')
})

test('a network at its share replaces a limited number of connections per second; further ones are closed at once', async () => {
  const server = await serve(0, { connectionsPerNetwork: 2, replacedPerSecond: 1 })
  const slow = await atWork(server, 2)
  const answers = await Promise.all(
    Array.from(
      { length: 20 },
      () => stranger(server.port, 'GET / HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n').ended,
    ),
  )
  expect(answers).toContain('')
  expect(slow.filter(({ socket }) => !socket.destroyed).length).toBeGreaterThan(0)
  const other = stranger(server.port, 'GET / HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n', '127.0.0.2')
  expect(await other.ended).toMatch(/^HTTP\/1.1 200/)
})

test('a network that takes all connections cannot keep out another network', async () => {
  const server = await serve(0, { maxConnections: 4, connectionsPerNetwork: 4 })
  const slow = await atWork(server, 4)
  const other = stranger(
    server.port,
    'GET / HTTP/1.1\r\nHost: larder\r\nConnection: close\r\n\r\n',
    '127.0.0.2',
  )
  expect(await other.ended).toMatch(/^HTTP\/1.1 200[^]*127\.0\.0\.2$/)
  expect(await slow[0]!.ended).toBe('')
})

test('a request behind a proxy counts for the network that the proxy names', async () => {
  const { app, port } = await serve(1, { maxConnections: 100, connectionsPerNetwork: 2 })
  app.post('/slow', async (c) => c.text(await c.req.text()))
  const slowFrom = (address: string) =>
    stranger(
      port,
      `POST /slow HTTP/1.1\r\nHost: larder\r\nX-Forwarded-For: ${address}\r\nContent-Length: 9\r\n\r\na`,
    )
  const first = slowFrom('192.0.2.1')
  await vi.waitFor(() => expect(first.socket.bytesWritten).toBeGreaterThan(0))
  const others = ['192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.1'].map(slowFrom)
  await vi.waitFor(() => expect(others.every(({ socket }) => socket.bytesWritten > 0)).toBe(true))
  const second = slowFrom('192.0.2.1')
  expect(await first.ended).toBe('')
  expect([...others, second].map(({ socket }) => socket.destroyed)).toEqual([
    false,
    false,
    false,
    false,
    false,
  ])
})

test('an answer ends after the idle time if its reader takes nothing', { timeout: 10_000 }, async () => {
  const { app, port } = await serve(0, { idleTimeoutMs: 300 })
  app.get('/endless', (c) =>
    c.body(new ReadableStream({ pull: (sender) => sender.enqueue(new Uint8Array(65_536)) })),
  )
  const { socket, ended } = stranger(port, 'GET /endless HTTP/1.1\r\nHost: larder\r\n\r\n')
  socket.pause()
  setTimeout(() => socket.resume(), 900)
  await ended
  expect(socket.bytesRead).toBeLessThan(16 * 1024 * 1024)
})

test('a draining server answers, and closes each connection after the answer', async () => {
  const { port, drain } = await serve(0)
  const kept = stranger(port, 'GET / HTTP/1.1\r\nHost: larder\r\n\r\n')
  await vi.waitFor(() => expect(kept.socket.bytesRead).toBeGreaterThan(0))
  drain()
  kept.socket.write('GET / HTTP/1.1\r\nHost: larder\r\n\r\n')
  expect((await kept.ended).match(/HTTP\/1\.1 200/g)).toHaveLength(2)
  expect(await stranger(port, 'GET / HTTP/1.1\r\nHost: larder\r\n\r\n').ended).toMatch(/Connection: close/i)
})

test('an untrusted proxy on this machine causes one warning, and hourly ones with a count later', () => {
  const clock = virtualClock()
  const warned: object[] = []
  const warn = untrustedProxyWarning(clock, { warn: (fields) => void warned.push(fields) })
  for (const address of ['192.0.2.1', 'unknown', '2001:db8::1']) warn(address)
  expect(warned).toEqual([])
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.8.9.1']) warn(address)
  expect(warned).toEqual([{ setting: 'TRUSTED_PROXIES', requests: 1 }])
  clock.advance(3_600_000)
  warn('127.0.0.1')
  expect(warned.slice(1)).toEqual([{ setting: 'TRUSTED_PROXIES', requests: 4 }])
})

test('only requests with an X-Forwarded-For header of no trusted proxy are reported', () => {
  const seen: string[] = []
  const request = (header?: string) =>
    ({
      env: { incoming: { socket: { remoteAddress: '127.0.0.1' } } },
      req: { header: () => header },
    }) as unknown as Parameters<ReturnType<typeof addressReader>>[0]
  const note = (address: string): void => void seen.push(address)
  expect(addressReader(0, note)(request('192.0.2.1'))).toBe('127.0.0.1')
  addressReader(0, note)(request())
  addressReader(1, note)(request('192.0.2.1'))
  expect(seen).toEqual(['127.0.0.1'])
})
