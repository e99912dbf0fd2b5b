import { createServer, request } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { addEndpoint } from '../../cloud/events/webhooks/endpoints.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { openShop } from '../cloud/support/shop.ts'
import { quantile, type Section } from './figures.ts'
import { serveCloud } from './served-cloud.ts'

/** One webhook in a hundred is dead: it accepts connections and never answers. */
const HEALTHY = 99
const EVENTS = 10
const PAUSE_MS = 1000
/** Maximum number of events of one key per minute (O §8). */
const PER_KEY = 80
const READERS_PER_KEY = 300

interface Options {
  runtime: Runtime
  folder: string
  rounds: number
  readers: number
}

/** Wall time with fractions of a millisecond. */
const now = (): number => performance.timeOrigin + performance.now()

/**
 * Measures the delay from the commit of an event to its receivers, at the real cloud program on SQLite:
 * webhooks, with and without a dead one, and readers of the live stream. An event is a stock count.
 */
export async function benchEvents({ runtime, folder, rounds, readers }: Options): Promise<Section> {
  const database = join(folder, 'events.sqlite')
  const db = openDatabase({ url: `sqlite:${database}` })
  await db.migrate()
  const { context } = await openShop(db)
  const keys = await Promise.all(
    Array.from(
      { length: Math.ceil(Math.max(((2 * rounds + 1) * EVENTS) / PER_KEY, readers / READERS_PER_KEY)) + 1 },
      async (_, index) => {
        const scopes = ['inventory:write', 'events:read'] as const
        const request = { name: `bench ${index}`, ownerId: 1, scopes, hubs: '*', expiresAt: null } as const
        return (await issueApiKey(db.kysely, runtime, request)).key
      },
    ),
  )
  const receiver = createReceiver()
  const port = await receiver.listen()
  let dead = ''
  await db.transact(async (tx) => {
    for (let number = 0; number <= HEALTHY; number += 1) {
      const url = `http://127.0.0.1:${port}/${number === HEALTHY ? 'dead' : number}`
      const fields = { url, description: null, event_types: ['*' as const], hub_ids: [] }
      dead = (await addEndpoint(tx, { ...context, runtime }, 1, fields)).id
    }
  })
  const setDead = (state: 'enabled' | 'disabled') =>
    db.kysely.updateTable('webhook_endpoints').set({ state }).where('id', '=', dead).execute()
  const cloud = await serveCloud({
    clock: runtime.clock,
    folder: join(folder, 'cloud'),
    database,
    environment: { WEBHOOK_ALLOW_PRIVATE: 'true' },
  })
  const counted = { without: [] as number[], with: [] as number[], p50: [] as number[], p99: [] as number[] }
  const streams = await Promise.all(
    Array.from({ length: readers }, (_, index) =>
      follow(cloud.port, keys[Math.floor(index / READERS_PER_KEY)]!),
    ),
  )
  let made = 0

  async function makeEvents(pauseMs: number): Promise<void> {
    for (let event = 0; event < EVENTS; event += 1) {
      const key = keys[Math.floor(made / PER_KEY)]!
      made += 1
      await count(cloud.port, key, 10 + (made % 5))
      await sleep(runtime.clock, pauseMs)
    }
  }

  /** Delays of webhooks and streams, for events one after the other. */
  async function measure(): Promise<{ webhooks: number[]; streams: number[] }> {
    receiver.delays.length = 0
    for (const stream of streams) stream.delays.length = 0
    await makeEvents(PAUSE_MS)
    for (let waited = 0; receiver.delays.length < HEALTHY * EVENTS && waited < 30_000; waited += 100)
      await sleep(runtime.clock, 100)
    return { webhooks: [...receiver.delays], streams: streams.flatMap(({ delays }) => delays) }
  }

  /**
   * Disconnects every reader, publishes events, and reconnects each reader with its last id. Returns the
   * missing events.
   */
  async function cut(): Promise<{ missed: number; repeated: number; seconds: number }> {
    const before = streams.map(({ seen }) => seen.at(-1)!)
    const known = new Set(streams[0]!.seen)
    for (const { socket } of streams) socket.destroy()
    await makeEvents(0)
    const from = runtime.clock.monotonic()
    const back = await Promise.all(
      before.map((last, index) => follow(cloud.port, keys[Math.floor(index / READERS_PER_KEY)]!, last)),
    )
    streams.splice(0, streams.length, ...back)
    const isThere = (): boolean => back.every(({ seen }) => new Set(seen).size >= EVENTS)
    for (let waited = 0; !isThere() && waited < 30_000; waited += 50) await sleep(runtime.clock, 50)
    const seconds = (runtime.clock.monotonic() - from) / 1000
    const all = new Set(back.flatMap(({ seen }) => seen))
    return {
      missed: back.reduce((sum, { seen }) => sum + Math.max(EVENTS, all.size) - new Set(seen).size, 0),
      repeated: back.reduce(
        (sum, { seen }) => sum + seen.length - new Set(seen).size + seen.filter((id) => known.has(id)).length,
        0,
      ),
      seconds,
    }
  }

  const cuts: Awaited<ReturnType<typeof cut>>[] = []
  try {
    for (let round = 0; round < rounds; round += 1)
      for (const kind of round % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
        await setDead(kind === 'with' ? 'enabled' : 'disabled')
        const found = await measure()
        if (found.webhooks.length !== HEALTHY * EVENTS || found.streams.length !== readers * EVENTS)
          throw new Error(`${found.webhooks.length} deliveries and ${found.streams.length} messages came`)
        counted[kind].push(quantile(found.webhooks, 0.99))
        counted.p50.push(quantile(found.streams, 0.5))
        counted.p99.push(quantile(found.streams, 0.99))
      }
    cuts.push(await cut())
  } finally {
    for (const { socket } of streams) socket.destroy()
    await cloud.stop()
    receiver.close()
    await db.close()
  }
  return {
    title: `events: ${HEALTHY} webhooks and ${readers.toLocaleString('en')} readers of one process (${rounds} rounds of ${EVENTS} events)`,
    figures: [
      { name: 'webhook, p99 from commit to receiver, all healthy', values: counted.without, unit: 'ms' },
      { name: 'the same with a dead one among a hundred', values: counted.with, unit: 'ms' },
      {
        name: 'ratio, with to without',
        values: counted.with.map((value, index) => value / counted.without[index]!),
        unit: 'times',
        aim: '1',
      },
      { name: 'live stream, p50 from commit to reader', values: counted.p50, unit: 'ms' },
      { name: 'live stream, p99 from commit to reader', values: counted.p99, unit: 'ms' },
      {
        name: `${EVENTS} events while all are cut off: missed, with Last-Event-ID`,
        values: cuts.map(({ missed }) => missed),
        unit: 'events',
        aim: '0',
      },
      {
        name: 'told a second time',
        values: cuts.map(({ repeated }) => repeated),
        unit: 'events',
        aim: '0',
      },
      { name: 'until all have caught up', values: cuts.map(({ seconds }) => seconds), unit: 's' },
    ],
    notes: [
      'from `created_at` of the event, which is written just before the commit; senders, readers and receivers share the machine',
    ],
  }
}

/** Counts a product over a new connection: a kept-alive one may be closed at the other end during a pause. */
function count(port: number, key: string, quantity: number): Promise<void> {
  const path = '/api/v1/owners/hubs/product/1/update_quantity'
  const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' }
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', path, method: 'PUT', headers, agent: false }
    const call = request(options, (answer) => {
      answer.resume()
      if (answer.statusCode === 200) answer.on('end', resolve)
      else reject(new Error(`the count was answered ${answer.statusCode}`))
    })
    call.on('error', reject)
    call.end(JSON.stringify({ quantity }))
  })
}

/** Receives all webhooks except those of the dead one. */
function createReceiver() {
  const delays: number[] = []
  const server = createServer((request, response) => {
    if (request.url === '/dead') return
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      delays.push(now() - Date.parse((JSON.parse(body) as { timestamp: string }).timestamp))
      response.end()
    })
  })
  return {
    delays,
    listen: () =>
      new Promise<number>((resolve) =>
        server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
      ),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

interface Reader {
  socket: Socket
  delays: number[]
  /** Ids of the received events, in order. */
  seen: string[]
}

/** A reader of the live stream with minimal work; starts after `last`, if it is given. */
function follow(port: number, key: string, last?: string): Promise<Reader> {
  const reader = { delays: [] as number[], seen: [] as string[] }
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('error', reject)
    const after = last === undefined ? '' : `Last-Event-ID: ${last}\r\n`
    socket.write(
      `GET /api/v1/owners/events/stream HTTP/1.1\r\nHost: bench\r\nX-API-Key: ${key}\r\nX-Forwarded-For: 192.0.2.1\r\n${after}\r\n`,
    )
    let rest = ''
    socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1')
      if (text.startsWith('HTTP/1.1 ') && !text.startsWith('HTTP/1.1 200')) reject(new Error(text))
      if (text.includes(': ok')) resolve({ socket, ...reader })
      // A divided message is read together with the next chunk.
      const end = text.lastIndexOf('\n\n') + 2
      rest = text.slice(end)
      const whole = text.slice(0, end)
      for (const [, id] of whole.matchAll(/^id: (\S+)/gm)) reader.seen.push(id!)
      for (const [, at] of whole.matchAll(/"created_at":"([^"]+)"/g))
        reader.delays.push(now() - Date.parse(at!))
    })
  })
}
