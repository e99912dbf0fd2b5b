import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { holdsWithin, sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { waitUntilReady } from '../../simulator/demo/programs.ts'
import { violationsOf } from '../invariants/check.ts'
import { seededChance } from '../simulation/chance.ts'
import { missing, service } from '../support/services.ts'
import { createClient } from './chaos/client.ts'
import { createAuditor } from './chaos/collect.ts'
import { createCopies } from './chaos/copies.ts'
import { newCustomer, type Customer } from './chaos/customer.ts'
import { createPlant } from './chaos/plant.ts'
import { createPostgresDatabase } from './chaos/postgres.ts'
import { roomOf } from './chaos/room.ts'
import { shop } from './chaos/shopper.ts'
import { emptyAllBins, emptyAbandonedBins, resolveUnconfirmed } from './chaos/staff.ts'
import { Tally } from './chaos/tally.ts'

const runtime = systemRuntime()
const { clock } = runtime
const HOUR = 3_600_000
const S = OrderStatus

async function install() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-restored-'))
  const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
  const failures: string[] = []
  const plant = await createPlant({
    runtime,
    folder,
    kind: { type: 'at-scale', databaseUrl: database.url },
    speed: 12,
    onFailure: (name, how, logFile) =>
      failures.push(`${name} ended by itself (${how}): ${readFileSync(logFile, 'utf8').slice(-600)}`),
  })
  const { databaseUrl, databaseLine: line } = plant
  const copies = createCopies({ databaseUrl, line: line!, clock })
  const room = roomOf(plant, clock)
  const auditor = await createAuditor(plant, room)
  onTestFinished(async () => {
    await auditor.close()
    await plant.close()
    await copies.close()
    await database.remove()
    rmSync(folder, { recursive: true })
  })
  plant.start()
  const ready = { clock, baseUrl: plant.cloudUrls[0]!, hubId: plant.hubId, timeoutMs: 60_000 }
  const serves = () => waitUntilReady({ ...ready, isGivenUp: () => failures.length > 0 })
  expect(await serves()).toBe(true)
  return { plant, copies, room, auditor, failures, serves }
}

const both = missing('postgres') === undefined ? service('mosquitto') : service('postgres')
both(
  'after a restore of an hour-old database during sales, all orders end correctly, no units go to another customer, and stock and money add up',
  async () => {
    const { plant, copies, room, auditor, failures, serves } = await install()
    const tally = new Tally()
    const client = createClient({ urls: plant.cloudUrls, runtime, tally })
    const { hubId, seed } = plant
    const apiKey = seed.owner.api_key
    const products = [...new Set(seed.shelves.map(({ product_id }) => product_id))]
    const clouds = plant.programs.filter((name) => name.startsWith('cloud-'))
    let number = 0
    const come = (quantity: number): Promise<Customer> =>
      newCustomer({ plant, client, room }, `customer-${++number}`, [
        { product_id: products[number % products.length]!, quantity },
      ])
    const reaches = (customer: Customer, status: OrderStatus): Promise<boolean> =>
      holdsWithin(clock, 30_000, async () => (await customer.order()).processing_status >= status)
    async function collect(customer: Customer): Promise<void> {
      expect(await reaches(customer, S.READY)).toBe(true)
      await holdsWithin(clock, 20_000, async () => {
        if ((await customer.order()).processing_status >= S.COMPLETED) return true
        await customer.open()
        await customer.take()
        return false
      })
      expect((await customer.order()).processing_status).toBe(S.COMPLETED)
    }
    const refund = (customer: Customer, amount: number) =>
      client.withRetries({
        name: 'refund',
        method: 'POST',
        path: `/api/v1/owners/orders/${customer.orderId}/refund`,
        apiKey,
        body: { amount },
      })

    const early = await come(1)
    await early.pay()
    await collect(early)
    await refund(early, 10)
    const waiting = await come(2)
    await waiting.pay()
    expect(await reaches(waiting, S.READY)).toBe(true)
    const paying = await come(1)
    const action = await paying.pay('pm_card_authenticationRequired')
    expect(action.status).toBe('requires_action')
    const copy = await copies.copy()

    // Changes that the copy lacks: a collected order, a paid order, a refunded order, new orders, a count, an
    // hour.
    await collect(waiting)
    await client.withRetries({
      name: 'confirm',
      method: 'POST',
      path: '/users/payments/confirm-payment',
      bearer: paying.bearer,
      body: { order_id: paying.orderId, payment_intent_id: action.payment_id },
    })
    await collect(paying)
    await refund(early, 20)
    for (const name of [...clouds, 'hub' as const]) plant.skew(name, HOUR)
    // For a clock one hour ahead, the hub was last online an hour ago.
    await sleep(clock, 1000)
    await expect.poll(serves, { timeout: 60_000, interval: 1000 }).toBe(true)
    const late = await come(1)
    await late.pay()
    await collect(late)
    const row = (await room.state()).rows.find(({ units }) => units > 0)!
    const { cabinet, shelf, row: place, units } = row
    expect(await room.atHub('/stock/count', { location: { cabinet, shelf, row: place }, units })).toBe(true)

    let isOpen = true
    const chance = seededChance(7)
    const world = { client, room, clock, tally, hubId, apiKey, products, isOpen: () => isOpen }
    const people = [
      ...Array.from({ length: 4 }, (_, index) =>
        shop({ ...world, chance: chance.fork() }, `shopper-${index}`),
      ),
      emptyAbandonedBins({ ...world, chance: chance.fork() }),
    ]
    await sleep(clock, 5000)
    const sold = await Promise.all([come(1), come(1), come(1)])
    for (const customer of sold) await customer.pay().catch(() => undefined)
    await Promise.all(clouds.map((name) => plant.halt(name)))
    await copies.putBack(copy)
    for (const name of clouds) plant.start(name)
    await sleep(clock, 12_000)
    isOpen = false
    await Promise.all(people)

    const rests = (): Promise<boolean> =>
      holdsWithin(clock, 60_000, async () => (await auditor.unfinished()) === undefined)
    await rests()
    expect(await emptyAllBins(world)).toBe(true)
    await resolveUnconfirmed(world)
    await rests()
    expect(await auditor.unfinished()).toBeUndefined()
    const evidence = { ...(await auditor.evidence()), lost: copies.lost }
    expect(violationsOf(evidence)).toEqual([])
    expect(failures).toEqual([])
    // The copy has the first three orders; the processor's books have all of them, with their refunds.
    const known = evidence.cloud.orders.filter(({ id }) =>
      [early, waiting, paying].some(({ orderId }) => orderId === id),
    )
    expect(known.map(({ processing_status }) => processing_status)).toEqual([
      S.COMPLETED,
      S.COMPLETED,
      S.COMPLETED,
    ])
    expect([...copies.lost].filter((name) => name.startsWith('order ')).length).toBeGreaterThanOrEqual(2)
    expect(tally.of('visit ended COMPLETED').length).toBeGreaterThan(0)
  },
  180_000,
)
