import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { waitUntilReady } from '../../simulator/demo/programs.ts'
import { missing, service } from '../support/services.ts'
import { createClient } from './chaos/client.ts'
import { newCustomer, type Customer } from './chaos/customer.ts'
import { createPlant, type Plant } from './chaos/plant.ts'
import { createPostgresDatabase, type TestDatabase } from './chaos/postgres.ts'
import { roomOf, type Room } from './chaos/room.ts'
import { Tally } from './chaos/tally.ts'

const runtime = systemRuntime()
const { clock } = runtime
const needed = missing('postgres') === undefined ? ('mosquitto' as const) : ('postgres' as const)

interface Answer {
  status: number
  headers: Headers
  body: Record<string, unknown>
}

describe('two cloud processes on PostgreSQL and Mosquitto', () => {
  if (missing(needed) !== undefined) {
    service(needed)('two cloud processes behave as one', () => {})
    return
  }
  let folder: string
  let database: TestDatabase
  let plant: Plant
  let room: Room
  let turn = 0
  let customers = 0
  const failures: string[] = []

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'larder-two-clouds-'))
    database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
    plant = await createPlant({
      runtime,
      folder,
      kind: { type: 'at-scale', databaseUrl: database.url },
      speed: 5,
      onFailure: (name, how, logFile) =>
        failures.push(`${name} ended by itself (${how}): ${readFileSync(logFile, 'utf8').slice(-600)}`),
    })
    room = roomOf(plant, clock)
    plant.start()
    for (const baseUrl of plant.cloudUrls)
      await waitUntilReady({
        clock,
        baseUrl,
        hubId: plant.hubId,
        timeoutMs: 60_000,
        isGivenUp: () => failures.length > 0,
      })
    expect(failures).toEqual([])
  }, 180_000)

  afterAll(async () => {
    await plant.close()
    await database.remove()
    rmSync(folder, { recursive: true })
  })

  /** Calls the next process as the owner. */
  async function owner(method: string, path: string, options: { key?: string; body?: object } = {}) {
    const url = plant.cloudUrls[turn++ % plant.cloudUrls.length]!
    const answer = await fetch(`${url}/api/v1/owners/${path}`, {
      method,
      headers: {
        'X-API-Key': plant.seed.owner.api_key,
        ...(options.key !== undefined && { 'Idempotency-Key': options.key }),
        ...(options.body && { 'Content-Type': 'application/json' }),
      },
      ...(options.body && { body: JSON.stringify(options.body) }),
    })
    return { status: answer.status, headers: answer.headers, body: await answer.json() } as Answer
  }

  async function paid(units: number): Promise<{ customer: Customer; total: number }> {
    const client = createClient({ urls: plant.cloudUrls, runtime, tally: new Tally() })
    const items = [{ product_id: plant.seed.shelves[customers]!.product_id, quantity: units }]
    const customer = await newCustomer({ plant, client, room }, `two-clouds-${customers++}`, items)
    await customer.pay()
    return { customer, total: (await customer.order()).total }
  }

  test('a rate limit of 90 a minute counts both processes together, with a delay of one exchange', async () => {
    // Windows are whole minutes: the calls must be in one window.
    await vi.waitUntil(() => clock.now() % 60_000 < 40_000, { timeout: 30_000, interval: 100 })
    const statuses: number[] = []
    // Four parts; each part is published to the other process before the next.
    for (const calls of [40, 40, 20, 20]) {
      for (let call = 0; call < calls; call += 1) statuses.push((await owner('GET', 'hubs')).status)
      await sleep(clock, 600)
    }
    const served = statuses.filter((status) => status === 200).length
    // Each process knows its own calls of the third part, and all calls of the first two.
    expect(served).toBeGreaterThanOrEqual(90)
    expect(served).toBeLessThanOrEqual(100)
    expect(statuses.slice(100)).toEqual(Array.from({ length: 20 }, () => 429))
    expect((await owner('GET', 'hubs')).headers.get('X-RateLimit-Remaining')).toBe('0')
  })

  test('a request repeated at the other process gets the first answer and is executed once', async () => {
    const { customer, total } = await paid(1)
    const refund = `orders/${customer.orderId}/refund`
    const options = { key: 'two-clouds-once', body: { amount: 1 } }
    const first = await owner('POST', refund, options)
    const second = await owner('POST', refund, options)
    expect([first.status, second.status]).toEqual([200, 200])
    expect(second.body).toEqual(first.body)
    expect([first, second].map(({ headers }) => headers.get('Idempotent-Replayed'))).toEqual([null, 'true'])
    const other = await owner('POST', refund, { key: 'two-clouds-once', body: { amount: 2 } })
    expect([other.status, (other.body['error'] as { code: string }).code]).toEqual([
      422,
      'idempotency_key_reused',
    ])
    expect(await refundedOf(customer.orderId)).toBe(1)
    expect(total).toBeGreaterThan(3)
  })

  test('simultaneous refunds at both processes never return more than was paid', async () => {
    const { customer, total } = await paid(2)
    const amount = Math.ceil(total / 7)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        owner('POST', `orders/${customer.orderId}/refund`, { body: { amount } }),
      ),
    )
    const done = answers.filter(({ status }) => status === 200).length
    expect(done * amount).toBeLessThanOrEqual(total)
    expect(done).toBeGreaterThan(0)
    expect(await refundedOf(customer.orderId)).toBe(done * amount)
    await owner('POST', `orders/${customer.orderId}/refund`)
    expect(await refundedOf(customer.orderId)).toBe(total)
  })

  test('a command moves the hub once, through either process', async () => {
    const before = (await room.actuations()).length
    for (const action of ['open_bin', 'close_bin', 'raise_bin', 'lower_bin']) {
      const answer = await owner('POST', `controls/${action}?bin=4&hub=${plant.hubId}`)
      expect([action, answer.status]).toEqual([action, 200])
    }
    const motions = (await room.actuations()).slice(before).filter(({ device }) => device === 'bin-4')
    expect(motions.map(({ action }) => action)).toEqual([
      'open_door',
      'close_door',
      'raise_lift',
      'lower_lift',
    ])
  })

  test('an order placed at one process can be followed at the other, to its end', async () => {
    const { customer } = await paid(1)
    await vi.waitUntil(async () => (await customer.order()).processing_status >= OrderStatus.READY, {
      timeout: 60_000,
      interval: 200,
    })
    expect(await customer.open()).toBe(true)
    await customer.take()
    await vi.waitUntil(async () => (await customer.order()).processing_status === OrderStatus.COMPLETED, {
      timeout: 60_000,
      interval: 200,
    })
  })

  /** Refunded cents according to the books. */
  async function refundedOf(orderId: number): Promise<number> {
    const db = new Client({ connectionString: database.url })
    await db.connect()
    try {
      const { rows } = await db.query<{ sum: string | null }>(
        "select sum(amount) from refunds where order_id = $1 and status = 'succeeded'",
        [orderId],
      )
      return Number(rows[0]!.sum ?? 0)
    } finally {
      await db.end()
    }
  }
}, 120_000)
