import { beforeEach, describe, expect, test, vi } from 'vitest'
import { hostCheck } from '../../../protocol/model/allowed-hosts.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { pageAssets } from '../../../protocol/page-assets.ts'
import type { createConsole } from '../../../simulator/console/http.ts'
import { faultTypes } from '../../../simulator/faults/fault-types.ts'
import { Fleet } from '../../../simulator/fleet.ts'
import { SimulatedHub } from '../../../simulator/simulated-hub.ts'
import type { SavedWorld } from '../../../simulator/storage/world-shelf.ts'
import { openRoom, type Bench } from '../../world/room.ts'
import { testConsole } from '../support/console.ts'
import { smallHub } from '../support/hardware.ts'
import { virtualRuntime } from '../../world/clock.ts'

let bench: Bench
let app: ReturnType<typeof createConsole>
let fleet: Fleet
let worlds: Map<string, SavedWorld>
/** Hub 1 is the bench's own until a test restarts its world. */
let isAnew = false
/** Settles when a hub is mounted. */
let mounted = Promise.resolve()

const file = (text: string) => new TextEncoder().encode(text)
const built: Record<string, Uint8Array<ArrayBuffer>> = {
  'index.html': file('<script type="module" src="./index-a1.js"></script>'),
  'index-a1.js': file('plain'),
  'index-a1.js.br': file('packed'),
}
const page = pageAssets(
  { readdirSync: () => Object.keys(built), readFileSync: (path) => built[path.replace('/assets/', '')]! },
  '/assets',
)

beforeEach(async () => {
  bench = openRoom()
  const isAllowedHost = hostCheck(['simulator.test'])
  const { clock } = bench
  worlds = new Map()
  fleet = new Fleet({
    clock,
    wireKept: 100,
    storageOf: () => bench.storage,
    worlds: {
      names: () => [...worlds.keys()],
      read: (name) => worlds.get(name),
      write: (name, world) => void worlds.set(name, world),
    },
    make: (hardware, storage) =>
      hardware.hubId === 1 && !isAnew
        ? bench.hub
        : new SimulatedHub({ hardware, storage, runtime: virtualRuntime(7, bench.clock), log: silentLog }),
    mount: async () => {
      await mounted
      return async () => {}
    },
  })
  isAnew = false
  await fleet.add(smallHub)
  isAnew = true
  const { random } = virtualRuntime(8, bench.clock)
  ;({ app } = testConsole({ fleet, page, clock, random, isAllowedHost }))
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
  test('login returns the token of the hub’s own page if it is known', async () => {
    const { status, json } = await get('/api/hubs/1/login')
    expect([status, json.link]).toEqual([200, 'http://hub1.local:8081/#token=a-token'])
    await fleet.add({ ...smallHub, hubId: 2 })
    expect((await get('/api/hubs/2/login')).status).toBe(404)
  })

  test('state returns positions, doors, rows with units, temperatures and GPIO levels', async () => {
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

  test('actuations returns the log of physical acts after any number', async () => {
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

  test('faults can be raised, listed, cleared and explained', async () => {
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
    const ofRow = await post('/api/hubs/1/faults', { type: 'jam', target: 'row 1/1/2' })
    expect(ofRow).toMatchObject({ status: 201, json: { target: 'row 1/1/2' } })
    await call('DELETE', '/api/hubs/1/faults')
    expect((await get('/api/hubs/1/faults')).json).toEqual([])
  })

  test('a person’s act changes the world, or is refused with the obstacle', async () => {
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

  test('power can be switched off for the hub or one controller, also for a limited time', async () => {
    const { json } = await post('/api/hubs/1/power', { state: 'off' })
    expect(json.controllers).toMatchObject([{ powered: false }, { powered: false }])
    await post('/api/hubs/1/power', { state: 'on' })
    await post('/api/hubs/1/power', { state: 'off', controller: 'back', for_ms: 500 })
    expect([...bench.hub.controllers.values()].map(({ isPowered }) => isPowered)).toEqual([true, false])
    bench.clock.advance(600)
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
  ])('the request POST %s %j is refused', async (path, body, status, code) => {
    expect(await post(`/api/hubs/1${path}`, body)).toEqual({ status, json: error(code) })
    expect(bench.hub.actuations()).toEqual([])
    expect(bench.hub.faults.active()).toEqual([])
  })

  test('a request for another hub, another path or from another site is refused', async () => {
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

  test('a request from a page of another site is refused, also under an allowed host name', async () => {
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

  test('the page may load only its own files and no frame; files are compressed and cached without expiry', async () => {
    const { headers } = await app.request('/')
    const policy = headers.get('content-security-policy')
    expect(policy).not.toMatch(/unsafe|https?:/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    const packed = await app.request('/index-a1.js', { headers: { 'accept-encoding': 'gzip, br' } })
    expect(await packed.text()).toBe('packed')
    expect(packed.headers.get('content-encoding')).toBe('br')
    expect(packed.headers.get('cache-control')).toMatch(/immutable/)
    expect(await (await app.request('/index-a1.js')).text()).toBe('plain')
    expect((await app.request('/index-b2.js')).status).toBe(404)
  })

  test('a build without its pages is reported in one sentence, and serves everything else', async () => {
    const missing = pageAssets(
      {
        readdirSync: () => {
          throw new Error('ENOENT')
        },
        readFileSync: () => file(''),
      },
      '/nowhere',
    )
    const { clock } = bench
    const { app: bare } = testConsole({
      fleet,
      page: missing,
      clock,
      random: virtualRuntime(8, bench.clock).random,
    })
    const answer = await bare.request('/')
    expect([answer.status, await answer.text()]).toEqual([
      503,
      'This build is without its pages: run npm run build.\n',
    ])
    expect((await bare.request('/api/hubs')).status).toBe(200)
  })

  test('live sends the whole state first, then changes, acts and the wire, until the hub is removed', async () => {
    const stream = await readEvents('/api/hubs/1/live')
    const first = await stream.next()
    expect(first.event).toBe('state')
    expect(first.data).toMatchObject({ hub_id: 1, doors: [{ door: 'main', open: false }, {}] })
    expect(first.data).not.toHaveProperty('time')
    await post('/api/hubs/1/faults', { type: 'door_forced', target: 'main' })
    // The greeting between the hub and its host comes first.
    while ((await stream.next()).event !== 'changes');
    expect((await stream.next()).data).toMatchObject([{ device: 'main', action: 'force_open' }])
    await fleet.remove(1)
    while ((await stream.next()).event !== 'gone');
  })

  test('the wire shows frames as sent and received, edges and motions; a raw line gets the right CRC', async () => {
    await post('/api/hubs/1/faults', { type: 'silent_port', target: 'front' })
    expect(await post('/api/hubs/1/wire', { controller: 'front', line: '~0001 PING t=5' })).toMatchObject({
      json: { line: '~0001 PING t=5*465a' },
    })
    bench.hub.gpio.drive('main_lock', 1)
    const entries = (await get('/api/hubs/1/wire')).json as unknown as object[]
    expect(entries.slice(-3)).toMatchObject([
      { kind: 'frame', controller: 'front', type: 'PING', seq: 1, fields: { t: 5 }, arrived: [] },
      { kind: 'motion', device: 'main', action: 'unlock', phase: 'ended' },
      { kind: 'edge', gpio: 'main_lock', level: 1, by: 'hub' },
    ])
    expect(await post('/api/hubs/1/wire', { controller: 'attic', line: 'x' })).toMatchObject({ status: 404 })
    const lines = (await (await app.request('/api/hubs/1/wire.jsonl')).text()).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual(entries)
  })

  test('the VCD dump of the wire has the edges of the log of physical acts', async () => {
    for (const level of [1, 0, 1] as const) {
      bench.clock.advance(1000)
      bench.hub.gpio.drive('main_lock', level)
    }
    bench.dispense(1)
    const dump = await (await app.request('/api/hubs/1/wire.vcd')).text()
    const code = (name: string) => new RegExp(`\\$var wire 1 (\\S+) ${name} \\$end`).exec(dump)![1]!
    const changes = dump.slice(dump.indexOf('$dumpvars')).split('\n')
    const of = (name: string) => changes.filter((line) => line.slice(1) === code(name)).map((line) => line[0])
    const acts = bench.hub.actuations()
    const locks = acts
      .filter(({ action }) => action.endsWith('lock'))
      .map(({ action }) => (action === 'unlock' ? '1' : '0'))
    expect(of('main_lock')).toEqual(['0', ...locks])
    expect(of('cabinet_1_runs')).toEqual(['0', '1', '0'])
    const times = changes.filter((line) => line.startsWith('#')).map((line) => Number(line.slice(1)))
    expect(times).toEqual([...times].sort((one, other) => one - other))
  })

  test('hubs can be added and removed while the simulator runs', async () => {
    expect(await post('/api/hubs', { hub_id: 7, like: 1 })).toMatchObject({
      status: 201,
      json: { hardware: { hubId: 7, controllers: [{ port: 'ports/7/front' }, {}] } },
    })
    expect(await post('/api/hubs', { hub_id: 7, like: 1 })).toEqual({
      status: 409,
      json: error('not_possible', /already/),
    })
    expect(await post('/api/hubs', { hub_id: 8, like: 5 })).toMatchObject({ status: 404 })
    expect((await get('/api/hubs')).json).toEqual([{ hub_id: 1 }, { hub_id: 7 }])
    expect((await call('DELETE', '/api/hubs/7')).status).toBe(200)
    expect((await get('/api/hubs/7/state')).status).toBe(404)
  })

  test('a hub can be removed, also while it is being created', async () => {
    let done = (): void => {}
    mounted = new Promise((resolve) => (done = resolve))
    const added = post('/api/hubs', { hub_id: 7, like: 1 })
    await vi.waitUntil(() => fleet.stations.has(7))
    const gone = call('DELETE', '/api/hubs/7')
    done()
    expect([(await added).status, (await gone).status]).toEqual([201, 200])
    expect([...fleet.stations.keys()]).toEqual([1])
  })

  test('a world can be saved, loaded and restarted', async () => {
    const unitsOf = async () => ((await get('/api/hubs/1/state')).json.rows as { units: number }[])[0]!.units
    bench.dispense(1)
    await post('/api/hubs/1/world', { action: 'save', name: 'one-sold' })
    await post('/api/hubs/1/world', { action: 'reset' })
    expect([await unitsOf(), (await get('/api/hubs/1/actuations')).json]).toEqual([5, []])
    await post('/api/hubs/1/world', { action: 'load', name: 'one-sold' })
    expect(await unitsOf()).toBe(4)
    expect((await get('/api/worlds')).json).toEqual(['one-sold'])
    expect(await post('/api/hubs/1/world', { action: 'load', name: 'other' })).toEqual({
      status: 409,
      json: error('not_possible', /there is no world other; worlds: one-sold/),
    })
    expect((await post('/api/hubs/1/world', { action: 'save', name: '../x' })).status).toBe(422)
  })
})

/** Reads server-sent events one by one; virtual time passes during each wait. */
async function readEvents(path: string) {
  const answer = await app.request(path)
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    async next(): Promise<{ event: string; data: unknown }> {
      for (;;) {
        const end = text.indexOf('\n\n')
        if (end >= 0) {
          const block = text.slice(0, end)
          text = text.slice(end + 2)
          const data = /^data: (.*)$/m.exec(block)?.[1]
          if (data !== undefined) return { event: /^event: (.*)$/m.exec(block)![1]!, data: JSON.parse(data) }
          continue
        }
        const mover = setInterval(() => bench.clock.advance(100), 1)
        const { value, done } = await reader.read()
        clearInterval(mover)
        if (done) throw new Error('the stream has ended')
        text += value
      }
    },
  }
}
