import { once } from 'node:events'
import { get } from 'node:https'
import { connect, type Socket } from 'node:net'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, test } from 'vitest'
import { createFront, listen, type Listener } from '../../../edge/local-api/front.ts'
import { listenPatiently } from '../../../edge/local-api/patient-listener.ts'
import { ensureToken } from '../../../edge/local-api/token.ts'
import { serverBounds } from '../../../protocol/model/bound-server.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { defaultsOf } from '../../../protocol/model/program-settings.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { service } from '../../support/services.ts'
import { virtualRuntime } from '../../world/clock.ts'

const bounds = defaultsOf(
  serverBounds('LOCAL', { maxConnections: 10, connectionsPerNetwork: 10, requestTimeoutMs: 20_000 }),
)
const runtime = systemRuntime()
const listeners: Listener[] = []
afterEach(() => listeners.splice(0).forEach((listener) => void listener.close()))

const ledger = { epoch: '0'.repeat(32), base: 0, baseTag: 0, last: 0 }

async function front(probe: () => boolean, port = 0, failingLoads = 0) {
  let loads = 0
  const answer = createFront({
    hubId: 3,
    probes: { journal: probe },
    sync: { state: () => ({ phase: 'waiting', session: null, receivedMsAgo: 12, ledger }) },
    load: () => {
      loads++
      if (loads <= failingLoads) return Promise.reject(new Error('no such module'))
      return Promise.resolve((_request, response) => void response.end('"the rest"'))
    },
  })
  const listener = await listen({ host: '127.0.0.1', port, bounds, runtime }, answer)
  listeners.push(listener)
  const get = async (path: string) => {
    const response = await fetch(listener.url + path)
    const json: unknown = await response.json()
    return { status: response.status, json }
  }
  return { get, url: listener.url, loads: () => loads }
}

describe("the local API's front", () => {
  it('the local API reports progress to supervisors before its handlers are loaded', async () => {
    const { get, loads } = await front(() => true)
    expect(await get('/health')).toEqual({
      status: 200,
      json: { status: 'ok', hub_id: 3, failing: [], sync: { phase: 'waiting', heard_ms_ago: 12 } },
    })
    expect(loads()).toBe(0)
    expect(await get('/api/state')).toEqual({ status: 200, json: 'the rest' })
    await get('/')
    expect(loads()).toBe(1)
  })

  it('a failed load of the handlers is repeated with the next call', async () => {
    const { get, loads } = await front(() => true, 0, 1)
    expect(await get('/api/state')).toMatchObject({
      status: 500,
      json: { error: { code: 'internal_error' } },
    })
    expect(await get('/api/state')).toEqual({ status: 200, json: 'the rest' })
    expect(loads()).toBe(2)
  })

  it('supervisors get 503 while a probe fails', async () => {
    const { get } = await front(() => {
      throw new Error('disk I/O error')
    })
    expect(await get('/health')).toMatchObject({
      status: 503,
      json: { status: 'failing', failing: ['journal (Error: disk I/O error)'] },
    })
  })

  it('a port in use is reported with its setting', async () => {
    const { url } = await front(() => true)
    const port = Number(new URL(url).port)
    await expect(front(() => true, port)).rejects.toThrow(`port ${port} of 127.0.0.1 is in use: set PORT`)
  })
})

describe('the hub’s token', () => {
  it('the token is created once, readable only by its owner; an empty file is replaced, and a short text is refused', () => {
    const folder = mkdtempSync(join(tmpdir(), 'larder-token-'))
    try {
      const path = join(folder, 'hub.token')
      const said: string[] = []
      const say = (sentence: string): void => void said.push(sentence)
      const token = ensureToken(path, virtualRuntime(7).random, say)
      expect(token).toMatch(/^[0-9a-f]{48}$/)
      expect(ensureToken(path, virtualRuntime(8).random, say)).toBe(token)
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(said).toEqual([])
      // A power cut may leave such a file.
      writeFileSync(path, '\n')
      const other = ensureToken(path, virtualRuntime(9).random, say)
      expect(said).toEqual([expect.stringContaining('hub.token was empty')])
      expect(ensureToken(path, virtualRuntime(10).random, say)).toBe(other)
      writeFileSync(path, 'short')
      expect(() => ensureToken(path, virtualRuntime(9).random, say)).toThrow('set LOCAL_TOKEN')
      expect(readFileSync(path, 'utf8')).toBe('short')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

service('openssl')('the local API with a certificate accepts only https', async () => {
  const certificate = makeCertificate()
  const { cert, key } = certificate
  try {
    const answer = (_request: unknown, response: { end(text: string): unknown }) =>
      void response.end('over TLS')
    const listener = await listen({ host: '127.0.0.1', port: 0, bounds, runtime, cert, key }, answer)
    listeners.push(listener)
    expect(listener.url).toMatch(/^https:/)
    const text = await new Promise<string>((resolve, reject) => {
      get(listener.url, { ca: cert }, (response) => {
        response.on('data', (chunk: Buffer) => resolve(chunk.toString()))
      }).on('error', reject)
    })
    expect(text).toBe('over TLS')
    await expect(fetch(listener.url.replace('https', 'http'))).rejects.toThrow()
  } finally {
    certificate.remove()
  }
})

test('a listener at an address that the machine lacks is repeated with growing pauses until it opens, and is reported once', async () => {
  const { clock, random } = virtualRuntime(1)
  const told: string[] = []
  const log = {
    ...silentLog,
    error: (fields: object) => void told.push((fields as { reason: string }).reason),
    info: (_: object, message: string) => void told.push(message),
  }
  let tries = 0
  const missing = Object.assign(new Error('EADDRNOTAVAIL'), { code: 'EADDRNOTAVAIL' })
  const opened: Listener = { url: 'http://10.0.0.7:8081', renew() {}, close: () => Promise.resolve() }
  const tryListen = (): Promise<Listener> =>
    ++tries < 4 ? Promise.reject(new Error('no such address', { cause: missing })) : Promise.resolve(opened)
  const address = { host: '10.0.0.7', port: 8081, bounds, runtime: { clock, random }, log }
  const listener = await listenPatiently(address, () => {}, tryListen)
  expect(listener.url()).toBe(undefined)
  await clock.pass(1000)
  expect(tries).toBe(2)
  await clock.pass(60_000)
  expect(tries).toBe(4)
  expect(listener.url()).toBe(opened.url)
  expect(told).toEqual(['no such address', expect.stringMatching(/is open/)])
})

test('a port in use ends the first attempt of a patient listener', async () => {
  const { url } = await front(() => true)
  const port = Number(new URL(url).port)
  const address = { host: '127.0.0.1', port, bounds, runtime, log: silentLog }
  await expect(listenPatiently(address, () => {})).rejects.toThrow('is in use: set PORT')
})

service('openssl')(
  'a listener opens with renewed files if its key is of another certificate, or a file is empty',
  async () => {
    const [certificate, other] = [makeCertificate(), makeCertificate()]
    const { cert, key } = certificate
    try {
      for (const damaged of [
        { cert, key: other.key },
        { cert: '', key },
      ]) {
        const { clock, random } = virtualRuntime(1)
        const address = { host: '127.0.0.1', port: 0, bounds, runtime: { clock, random }, log: silentLog }
        const listener = await listenPatiently({ ...address, ...damaged }, () => {})
        expect(listener.url()).toBe(undefined)
        listener.renew({ cert, key })
        await clock.pass(1000)
        await expect.poll(() => listener.url()).toMatch(/^https:/)
        expect(() => listener.renew(damaged)).toThrow('LOCAL_CERT and LOCAL_KEY cannot be used')
        await listener.close()
      }
    } finally {
      certificate.remove()
      other.remove()
    }
  },
)

service('openssl')(
  'over TLS unauthenticated callers end no connection with a request in progress',
  async () => {
    const certificate = makeCertificate()
    const { cert, key } = certificate
    let finish = (): void => {}
    const answer = (
      _request: unknown,
      response: { write(text: string): unknown; end(text: string): unknown },
    ) => {
      response.write('begun, ')
      finish = () => void response.end('done')
    }
    const few = { ...bounds, maxConnections: 3 }
    const listener = await listen({ host: '127.0.0.1', port: 0, bounds: few, runtime, cert, key }, answer)
    listeners.push(listener)
    const strangers: Socket[] = []
    try {
      const [response] = (await once(get(listener.url, { ca: cert }), 'response')) as [
        AsyncIterable<Buffer> & NodeJS.EventEmitter,
      ]
      for (let count = 0; count < 5; count++) {
        const stranger = connect(Number(new URL(listener.url).port), '127.0.0.1')
        stranger.on('error', () => {})
        strangers.push(stranger)
        await once(stranger.resume(), 'connect')
      }
      // The first connection must make room for the last one.
      await expect.poll(() => strangers[0]!.closed).toBe(true)
      finish()
      let text = ''
      for await (const chunk of response) text += String(chunk)
      expect(text).toBe('begun, done')
    } finally {
      for (const stranger of strangers) stranger.destroy()
      certificate.remove()
    }
  },
)
