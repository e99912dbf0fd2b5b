import { createHash } from 'node:crypto'
import { Script } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { createLocalApi, type LocalApiOptions, type LocalCore } from '../../../edge/local-api/local-api.ts'
import { hostCheck } from '../../../protocol/model/allowed-hosts.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { CommandResult } from '../../../protocol/mqtt/command.ts'
import { fakeRuntime } from '../support/fake-runtime.ts'

const TOKEN = 'a token of this test'
const OPERATION = '018f3c2a-7b4e-7c1d-9a3b-5c6d7e8f9012'
const location = { cabinet: 1, shelf: 2, row: 3 }

function bench(changes: Partial<LocalCore> = {}) {
  const runtime = fakeRuntime()
  const asked: unknown[] = []
  const logged: object[] = []
  const ask =
    (name: string) =>
    (...args: unknown[]) => {
      asked.push([name, ...args])
      return { ok: true } as const
    }
  const core: LocalCore = {
    operate: (body, reply) => {
      asked.push(['operate', body])
      reply(result('executed', null, { door: 'open', duration_ms: 900 }))
    },
    health: () => ({ accepting_orders: true, bins: [], fridges: [], doors: [], unknown_operations: 0 }),
    settle: ask('settle'),
    restock: ask('restock'),
    count: ask('count'),
    unlockDoor: ask('unlockDoor'),
    takeOverController: ask('takeOverController'),
    foreignControllers: () => ['bins'],
    unknownOperations: () => [],
    orders: () => [],
    stock: () => [{ product_id: 7, location, primary: true, quantity: 4, blocked: false }],
    ...changes,
  }
  const ledger = { epoch: '0'.repeat(32), base: 0, baseTag: 0, last: 0 }
  const options: LocalApiOptions = {
    hubId: 1,
    core,
    sync: { state: () => ({ phase: 'waiting', session: null, heardMsAgo: null, ledger }) },
    links: () => [{ controller: 'bins', port: '/dev/bins', up: false, firmware: null }],
    token: TOKEN.replaceAll(' ', '-'),
    isAllowedHost: hostCheck(['hub1.local']),
    clock: runtime.clock,
    log: {
      ...silentLog,
      info: (fields) => void logged.push(fields),
      warn: (fields) => void logged.push(fields),
    },
    motionTimeoutMs: 30_000,
    addressOf: () => '192.0.2.9',
  }
  const app = createLocalApi(options)
  const send = async (method: string, path: string, body?: unknown, token = options.token) => {
    const response = await app.request(path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: response.status, json: (await response.json()) as Record<string, unknown> }
  }
  return { app, runtime, asked, logged, send }
}

function result(
  outcome: CommandResult['outcome'],
  reason: CommandResult['reason'],
  data: CommandResult['data'],
): CommandResult {
  return { command_id: OPERATION, session: '0'.repeat(32), outcome, reason, data }
}

describe('the local API', () => {
  it('tells its state without the cloud', async () => {
    const { status, json } = await bench().send('GET', '/api/state')
    expect(status).toBe(200)
    expect(json).toMatchObject({
      hub_id: 1,
      stock: [{ product_id: 7, quantity: 4 }],
      unknown_operations: [],
      links: [{ controller: 'bins', up: false }],
      foreign_controllers: ['bins'],
      sync: { phase: 'waiting' },
    })
  })

  it('leaves one line of who guesses at its token', async () => {
    const { send, app, logged } = bench()
    for (let guess = 0; guess < 500; guess += 1) await send('GET', '/api/state', undefined, `guess-${guess}`)
    await app.request('/api/state')
    expect(logged).toEqual([{ refused: 'local_token', caller: '192.0.2.9', path: '/api/state', count: 1 }])
  })

  it('answers 401 to a missing, wrong or shortened token, on every path of /api', async () => {
    const { app, send, asked } = bench()
    for (const [method, path] of [
      ['GET', '/api/state'],
      ['POST', '/api/bins/1/open'],
      ['POST', '/api/doors/main/unlock'],
      ['POST', '/api/stock/count'],
      ['GET', '/api/nothing'],
    ] as const) {
      for (const token of ['', 'a-token-of-this', 'a-token-of-this-tesu', 'a-token-of-this-test-'])
        expect(await send(method, path, method === 'POST' ? {} : undefined, token)).toMatchObject({
          status: 401,
          json: { error: { code: 'authentication_required' } },
        })
      expect((await app.request(path, { method })).status).toBe(401)
    }
    expect(asked).toEqual([])
  })

  it('is not called by a name that is not its own, with its token or without', async () => {
    const { app } = bench()
    const ask = async (host: string) =>
      (await app.request('/', { headers: { host, authorization: `Bearer ${TOKEN.replaceAll(' ', '-')}` } }))
        .status
    expect([
      await ask('evil.example:8081'),
      await ask('hub1.local:8081'),
      await ask('10.0.0.7:8081'),
    ]).toEqual([403, 200, 200])
  })

  it('moves a bin and says how it went', async () => {
    const { send, asked } = bench()
    expect(await send('POST', '/api/bins/2/raise')).toEqual({
      status: 200,
      json: { ok: true, door: 'open', duration_ms: 900 },
    })
    expect(asked).toEqual([['operate', { name: 'raise_bin', bin: 2 }]])
    for (const outcome of ['refused', 'failed', 'unknown'] as const) {
      const { send: refused } = bench({
        operate: (_body, reply) => reply(result(outcome, 'interlock', null)),
      })
      expect(await refused('POST', '/api/bins/1/open', {})).toMatchObject({
        status: outcome === 'refused' ? 409 : 502,
        json: { error: { code: outcome, details: { reason: 'interlock' } } },
      })
    }
  })

  it('does not wait for ever for a motion', async () => {
    const { send, runtime } = bench({ operate: () => {} })
    const answer = send('POST', '/api/bins/1/lower')
    await new Promise((resolve) => void setImmediate(resolve))
    runtime.advance(30_000)
    expect(await answer).toMatchObject({ status: 504, json: { error: { code: 'timeout' } } })
  })

  it('settles, counts, restocks, unlocks and takes boards over', async () => {
    const { send, asked, logged } = bench()
    const ok = { status: 200, json: { ok: true } }
    expect(await send('POST', `/api/operations/${OPERATION}/settle`, { happened: true })).toEqual(ok)
    expect(await send('POST', '/api/stock/count', { location, units: 0 })).toEqual(ok)
    expect(await send('POST', '/api/stock/restock', { location, units: 12 })).toEqual(ok)
    expect(await send('POST', '/api/doors/fridge_1_left/unlock', { for_ms: 60_000 })).toEqual(ok)
    expect(await send('POST', '/api/controllers/bins/take-over')).toEqual(ok)
    expect(asked).toEqual([
      ['settle', OPERATION, true],
      ['count', location, 0],
      ['restock', location, 12],
      ['unlockDoor', 'fridge_1_left', 60_000],
      ['takeOverController', 'bins'],
    ])
    expect(logged).toEqual([
      { door: 'fridge_1_left', forMs: 60_000, ok: true },
      { controller: 'bins', ok: true },
    ])
  })

  it('says why the hub will not', async () => {
    for (const [reason, status, code] of [
      ['not_found', 404, 'not_found'],
      ['not_unknown', 409, 'not_unknown'],
      ['invalid', 422, 'invalid_request'],
      ['unavailable', 503, 'unavailable'],
    ] as const) {
      const { send } = bench({ settle: () => ({ ok: false, reason }) })
      const answer = await send('POST', `/api/operations/${OPERATION}/settle`, { happened: false })
      expect(answer).toMatchObject({ status, json: { error: { code } } })
    }
  })

  it.each([
    ['/api/stock/count', { location, units: -1 }, 422],
    ['/api/stock/count', { location, units: 1.5 }, 422],
    ['/api/stock/count', { location, unit: 1 }, 422],
    ['/api/stock/restock', { location, units: 0 }, 422],
    ['/api/stock/restock', { location: { cabinet: 9, shelf: 1, row: 1 }, units: 1 }, 422],
    ['/api/doors/main/unlock', { for_ms: 1e12 }, 422],
    ['/api/doors/cellar/unlock', {}, 422],
    ['/api/operations/17/settle', { happened: true }, 422],
    [`/api/operations/${OPERATION}/settle`, '{happened', 400],
    [`/api/operations/${OPERATION}/settle`, '[]', 422],
    ['/api/bins/5/open', {}, 422],
    ['/api/controllers/Bins/take-over', {}, 422],
    ['/api/bins/1/open', { now: true }, 422],
    ['/api/stock/count', ' '.repeat(20_000), 413],
    ['/api/bins/1/fly', {}, 404],
  ])('refuses %s with %j', async (path, body, status) => {
    const { send, asked } = bench()
    const answer = await send('POST', path, body)
    expect(answer.status).toBe(status)
    expect(answer.json).toHaveProperty('error.code')
    expect(asked).toEqual([])
  })

  it('hides from strangers what went wrong inside', async () => {
    const { send } = bench({
      orders: () => {
        throw new Error('a secret of the journal')
      },
    })
    const { status, json } = await send('GET', '/api/state')
    expect(status).toBe(500)
    expect(JSON.stringify(json)).not.toContain('secret')
  })

  it("serves the technician's page without any outside host, bound to its own script", async () => {
    const { app } = bench()
    const response = await app.request('/')
    const html = await response.text()
    const policy = response.headers.get('content-security-policy')!
    const script = /<script>([^]*)<\/script>/.exec(html)![1]!
    expect(policy).toContain(`'sha256-${createHash('sha256').update(script).digest('base64')}'`)
    expect(policy).toContain("default-src 'none'")
    expect(html).not.toMatch(/(src|href)=(?!"data:)|https?:/)
    // Compiled, not run: it must at least be JavaScript.
    expect(() => new Script(script)).not.toThrow()
  })
})
