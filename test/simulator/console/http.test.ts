import { Script } from 'node:vm'
import { beforeEach, describe, expect, test } from 'vitest'
import { hostCheck } from '../../../protocol/model/allowed-hosts.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { createConsole } from '../../../simulator/console/http.ts'
import { faultTypes } from '../../../simulator/faults/fault-types.ts'
import { createBench, type Bench } from '../support/bench.ts'

let bench: Bench
let app: ReturnType<typeof createConsole>

beforeEach(() => {
  bench = createBench()
  const isAllowedHost = hostCheck(['simulator.test'])
  app = createConsole({ hubs: new Map([[1, bench.hub]]), isAllowedHost, log: silentLog })
})

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : body === undefined ? undefined : JSON.stringify(body)
  const answer = await app.request(path, { method, headers, ...(text !== undefined && { body: text }) })
  return { status: answer.status, json: (await answer.json()) as never as Record<string, unknown> }
}
const get = (path: string) => call('GET', path)
const post = (path: string, body: unknown) => call('POST', path, body)
const error = (code: string, message?: RegExp) => ({
  error: {
    code,
    message: message ? (expect.stringMatching(message) as unknown) : (expect.any(String) as unknown),
  },
})

describe('the simulator’s HTTP interface', () => {
  test('state: positions, doors, rows with units, temperatures, GPIO levels', async () => {
    const { status, json } = await get('/api/hubs/1/state')
    expect(status).toBe(200)
    expect(json).toMatchObject({
      hub_id: 1,
      bins: [{ bin: 'bin-1', door: 'closed', lift: 'down', units: 0, contents: [] }, { bin: 'bin-2' }],
      fridges: [{ fridge: 'fridge-1', celsius: 4 }],
      doors: [
        { door: 'main', open: false, locked: true },
        { door: 'fridge_1_left', open: false, locked: true },
      ],
      gpio: { main_lock: 0, main_door: 0, fridge_1_left_lock: 0, fridge_1_left_door: 0 },
      controllers: [
        { controller: 'front', powered: true, connected: true },
        { controller: 'back', powered: true, connected: false },
      ],
      faults: [],
    })
    expect((json.rows as unknown[])[0]).toEqual({
      cabinet: 1,
      shelf: 1,
      row: 1,
      product_id: null,
      units: 5,
      depth: 5,
    })
  })

  test('actuations: the log of physical acts, after any number', async () => {
    bench.dispense(1)
    bench.perform(2, 'bin-1', 'raise_lift')
    const all = (await get('/api/hubs/1/actuations')).json as unknown as { n: number }[]
    expect(all).toMatchObject([
      { n: 1, device: 'cabinet-1', action: 'dispense', operation_id: '01900000-0000-7000-8000-000000000001' },
      { n: 2, device: 'bin-1', action: 'raise_lift' },
    ])
    expect((await get('/api/hubs/1/actuations?after=1')).json).toEqual(all.slice(1))
    expect(await get('/api/hubs/1/actuations?after=x')).toEqual({
      status: 422,
      json: error('validation_error', /whole number/),
    })
  })

  test('faults: raised, listed, cleared, explained', async () => {
    const types = (await get('/api/hubs/1/faults/types')).json as unknown as { type: string }[]
    expect(types.map(({ type }) => type)).toEqual(faultTypes)
    const raised = await post('/api/hubs/1/faults', {
      type: 'jam',
      target: 'bin-1',
      for_ms: 5000,
      probability: 0.5,
    })
    expect(raised).toMatchObject({ status: 201, json: { type: 'jam', target: 'bin-1', probability: 0.5 } })
    expect((await get('/api/hubs/1/faults')).json).toMatchObject([{ id: raised.json.id, remaining_ms: 5000 }])
    const path = `/api/hubs/1/faults/${String(raised.json.id)}`
    expect(await call('DELETE', path)).toMatchObject({ status: 200, json: { cleared: true } })
    expect(await call('DELETE', path)).toEqual({ status: 404, json: error('fault_not_found') })
    await post('/api/hubs/1/faults', { type: 'jam' })
    await call('DELETE', '/api/hubs/1/faults')
    expect((await get('/api/hubs/1/faults')).json).toEqual([])
  })

  test('act: what people do, and what stands in their way', async () => {
    bench.dispense(1)
    bench.perform(2, 'bin-1', 'open_door')
    expect(await post('/api/hubs/1/act', { action: 'take_items', target: 'bin-1' })).toEqual({
      status: 200,
      json: { action: 'take_items', target: 'bin-1', units: 1, left: 0 },
    })
    expect(await post('/api/hubs/1/act', { action: 'take_items', target: 'bin-1' })).toEqual({
      status: 409,
      json: error('not_possible', /empty/),
    })
    const restock = { action: 'restock', target: 'cabinet-1', shelf: 1, row: 1, units: 1, product_id: 7 }
    expect((await post('/api/hubs/1/act', restock)).status).toBe(200)
    expect((await post('/api/hubs/1/act', { action: 'press', target: 'back' })).status).toBe(200)
  })

  test('power: of the hub, of one controller, for a while', async () => {
    const { json } = await post('/api/hubs/1/power', { state: 'off' })
    expect(json.controllers).toMatchObject([{ powered: false }, { powered: false }])
    await post('/api/hubs/1/power', { state: 'on' })
    await post('/api/hubs/1/power', { state: 'off', controller: 'back', for_ms: 500 })
    expect([...bench.hub.controllers.values()].map(({ isPowered }) => isPowered)).toEqual([true, false])
    bench.time.pass(600)
    expect(bench.hub.controllers.get('back')!.isPowered).toBe(true)
    expect(await post('/api/hubs/1/power', { state: 'off', controller: 'attic' })).toEqual({
      status: 404,
      json: error('controller_not_found', /front, back/),
    })
  })

  test.each([
    ['/faults', { type: 'explode' }, 422, 'validation_error'],
    ['/faults', { type: 'jam', target: 'fridge-1' }, 422, 'invalid_fault'],
    ['/faults', { type: 'jam', for_ms: 0 }, 422, 'validation_error'],
    ['/faults', { type: 'jam', for_ms: 1e12 }, 422, 'validation_error'],
    ['/faults', { type: 'jam', probability: 2 }, 422, 'validation_error'],
    ['/faults', { type: 'jam', colour: 'red' }, 422, 'validation_error'],
    ['/faults', 'not json', 400, 'invalid_json'],
    ['/faults', '', 400, 'invalid_json'],
    ['/act', { action: 'dance', target: 'bin-1' }, 422, 'validation_error'],
    [
      '/act',
      { action: 'restock', target: 'cabinet-1', shelf: 1, row: 1, units: 1e9 },
      422,
      'validation_error',
    ],
    ['/act', { action: 'open_door', target: '../etc' }, 422, 'validation_error'],
    ['/act', { action: 'open_door', target: 'x'.repeat(20_000) }, 413, 'payload_too_large'],
    ['/power', { state: 'sideways' }, 422, 'validation_error'],
  ])('POST %s %j is refused', async (path, body, status, code) => {
    expect(await post(`/api/hubs/1${path}`, body)).toEqual({ status, json: error(code) })
    expect(bench.hub.actuations()).toEqual([])
    expect(bench.hub.faults.active()).toEqual([])
  })

  test('another hub, another path, another site', async () => {
    for (const id of ['2', 'x', '01x', '99999999999'])
      expect(await get(`/api/hubs/${id}/state`)).toEqual({
        status: 404,
        json: error('hub_not_found', /hubs: 1/),
      })
    expect(await get('/api/nothing')).toEqual({ status: 404, json: error('not_found') })
    const headers = { origin: 'https://elsewhere.example', host: '127.0.0.1:8082' }
    expect(await call('POST', '/api/hubs/1/power', { state: 'off' }, headers)).toEqual({
      status: 403,
      json: error('forbidden'),
    })
    const own = { origin: 'http://127.0.0.1:8082', host: '127.0.0.1:8082' }
    expect((await call('POST', '/api/hubs/1/power', { state: 'on' }, own)).status).toBe(200)
  })

  test('a name that leads here is not enough: another site’s pages say theirs', async () => {
    const rebound = { origin: 'http://evil.example:8082', host: 'evil.example:8082' }
    for (const [method, path, body] of [
      ['POST', '/api/hubs/1/power', { state: 'off' }],
      ['GET', '/api/hubs/1/state', undefined],
    ] as const)
      expect(await call(method, path, body, rebound)).toEqual({
        status: 403,
        json: error('forbidden', /SIMULATOR_ALLOWED_HOSTS/),
      })
    expect((await call('GET', '/api/hubs/1/state', undefined, { host: 'simulator.test' })).status).toBe(200)
  })

  test('the page runs its own script and style alone, in nobody’s frame', async () => {
    const { headers } = await app.request('/')
    const policy = headers.get('content-security-policy')
    expect(policy).not.toContain('unsafe-inline')
    expect(policy).toContain("frame-ancestors 'none'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  })

  test('the technician’s page needs no other host, and its script is a program', async () => {
    const answer = await app.request('/')
    const html = await answer.text()
    expect(answer.headers.get('content-type')).toMatch(/text\/html/)
    expect(html).not.toMatch(/https?:\/\//)
    const script = /<script>([\s\S]*)<\/script>/.exec(html)![1]!
    expect(() => new Script(script)).not.toThrow()
  })
})
