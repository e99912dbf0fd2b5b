import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { isPublic, HttpPoster, type PosterOptions } from '../../../cloud/events/webhooks/post.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'

const servers: Server[] = []
const { clock } = systemRuntime()

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function receiver(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ port: number; seen: () => number }> {
  let seen = 0
  const server = createServer((request, response) => {
    seen += 1
    handle(request, response)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, seen: () => seen }
}

const poster = (options: Partial<PosterOptions> = {}) =>
  new HttpPoster({ clock, timeoutMs: 300, allowHttp: true, allowPrivate: false, ...options })
const local = [{ address: '127.0.0.1', family: 4 }]
const elsewhere = [{ address: '93.184.216.34', family: 4 }]

test.each([
  ['8.8.8.8', true],
  ['93.184.216.34', true],
  ['2606:4700::1111', true],
  ['0.0.0.0', false],
  ['10.0.0.1', false],
  ['100.64.0.1', false],
  ['127.0.0.1', false],
  ['169.254.169.254', false],
  ['172.31.255.255', false],
  ['192.168.1.1', false],
  ['198.19.0.1', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['::1', false],
  ['::', false],
  ['fe80::1', false],
  ['fd00::1', false],
  ['ff02::1', false],
  ['::ffff:127.0.0.1', false],
  ['::ffff:8.8.8.8', false],
  ['64:ff9b::7f00:1', false],
  ['2002:7f00:1::', false],
  ['2001::1', false],
  ['2001:db8::1', false],
  ['nonsense', false],
])('the address %s is public: %s', (address, expected) => {
  expect(isPublic(address)).toBe(expected)
})

test('a host name with a private address is refused, and gets no request', async () => {
  const { port, seen } = await receiver((_, response) => response.end())
  const sender = poster({ resolve: () => Promise.resolve([...elsewhere, ...local]) })
  expect(await sender.refusal(`http://rebind.example:${port}/`)).toContain('not a public address')
  expect(await sender.post(`http://rebind.example:${port}/`, {}, '{}')).toMatchObject({
    error: expect.stringContaining('not a public address') as string,
  })
  expect(seen()).toBe(0)
})

test('a host name that is public at the check and private at the connection is not connected to', async () => {
  const { port, seen } = await receiver((_, response) => response.end())
  const answers = [elsewhere, local, local]
  const sender = poster({ resolve: () => Promise.resolve(answers.shift() ?? local) })
  expect(await sender.refusal(`http://rebind.example:${port}/`)).toBeUndefined()
  expect(await sender.post(`http://rebind.example:${port}/`, {}, '{}')).toMatchObject({
    error: expect.stringContaining('not a public address') as string,
  })
  expect(seen()).toBe(0)
})

test('each connection resolves the host name once, and uses the checked address', async () => {
  const { port, seen } = await receiver((_, response) => response.end())
  let asked = 0
  const sender = poster({
    allowPrivate: true,
    resolve: () => {
      asked += 1
      return Promise.resolve(asked === 1 ? local : elsewhere)
    },
  })
  expect(await sender.post(`http://once.example:${port}/`, {}, '{}')).toEqual({ status: 200 })
  expect([asked, seen()]).toEqual([1, 1])
  sender.stop()
})

test('literal addresses are judged like host names', async () => {
  const { port, seen } = await receiver((_, response) => response.end())
  const sender = poster()
  for (const host of [
    '127.0.0.1',
    '[::1]',
    '0.0.0.0',
    '2130706433',
    '0x7f000001',
    '[::ffff:127.0.0.1]',
    'localhost',
  ])
    expect([host, await sender.post(`http://${host}:${port}/`, {}, '{}')]).toEqual([
      host,
      { error: expect.stringContaining('not a public address') as string },
    ])
  expect(seen()).toBe(0)
})

test('redirects are not followed, silence times out, and a long answer is not read', async () => {
  const target = await receiver((_, response) => response.end())
  const { port } = await receiver((request, response) => {
    if (request.url === '/redirect')
      response.writeHead(307, { Location: `http://127.0.0.1:${target.port}/` }).end()
    else if (request.url === '/endless') {
      let isOpen = true
      response.writeHead(200).once('close', () => (isOpen = false))
      // Sent later, so that the receiver's disconnect comes in between.
      const more = (): void =>
        void (isOpen && response.write('x'.repeat(65_536), () => void setImmediate(more)))
      more()
    }
  })
  const sender = poster({ allowPrivate: true })
  const at = (path: string) => sender.post(`http://127.0.0.1:${port}${path}`, {}, '{}')
  expect(await at('/redirect')).toEqual({ status: 307 })
  expect(target.seen()).toBe(0)
  expect(await at('/silent')).toEqual({ error: 'no answer within 300 ms' })
  expect(await at('/endless')).toEqual({ status: 200 })
  const ended = sender.post(`http://127.0.0.1:${port}/silent`, {}, '{}')
  await new Promise((resolve) => setTimeout(resolve, 50))
  sender.stop()
  expect(await ended).toBe('stopped')
})

test('in production a webhook address must be https', async () => {
  expect(await poster({ allowHttp: false }).refusal('http://integrator.example/')).toContain('https://')
})

test.each([
  'localhost.',
  'LOCALHOST',
  'api.localhost',
  'ip6-localhost',
  'ip6-loopback.',
  'localhost.localdomain',
  'router',
  'printer.local',
  'db.internal',
  'nas.home.arpa',
])(
  'a webhook to the local name %s is refused at its creation, for any answer of a name server',
  async (host) => {
    const sender = poster({ resolve: () => Promise.resolve(elsewhere) })
    expect(await sender.refusal(`http://${host}/`)).toContain('local name')
    expect(await sender.post(`http://${host}/`, {}, '{}')).toMatchObject({
      error: expect.stringContaining('local name') as string,
    })
  },
)

test.each(['hooks.example', 'localhost.example.com', 'xn--bcher-kva.example'])(
  'a webhook to %s is accepted if it is public, and to any host if private addresses are allowed',
  async (host) => {
    const sender = poster({ resolve: () => Promise.resolve(elsewhere) })
    expect(await sender.refusal(`http://${host}/`)).toBeUndefined()
    const lenient = poster({ allowPrivate: true, resolve: () => Promise.resolve(local) })
    expect(await lenient.refusal('http://localhost./')).toBeUndefined()
  },
)
