import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { filesOfTar } from '../../protocol/model/tar.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { waitUntilReady } from '../../simulator/demo/programs.ts'
import { violationsOf } from '../invariants/check.ts'
import type { Motion } from '../invariants/evidence.ts'
import { createClient, type ApiAnswer, type Client } from './chaos/client.ts'
import { createAuditor, type Auditor } from './chaos/collect.ts'
import { newCustomer, type Customer } from './chaos/customer.ts'
import { createPlant, type Plant } from './chaos/plant.ts'
import { roomOf, type Room } from './chaos/room.ts'
import { emptyAllBins, resolveUnconfirmed } from './chaos/staff.ts'
import { Tally } from './chaos/tally.ts'
import { commandOf } from '../support/programs.ts'

const runtime = systemRuntime()
const { clock } = runtime
/** A command's time to live is at most the time that its caller waits. */
const COMMAND_TIMEOUT_MS = 2000
const tally = new Tally()
const failures: string[] = []

let folder: string
let plant: Plant
let room: Room
let client: Client
let auditor: Auditor
let customers = 0

// One installation for all tests. Each test leaves it in order, and the next test checks the books of all
// tests before.
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'larder-cut-off-'))
  plant = await createPlant({
    runtime,
    folder,
    kind: { type: 'bare' },
    speed: 5,
    settings: { cloud: { COMMAND_TIMEOUT_MS: String(COMMAND_TIMEOUT_MS), UNCLAIMED_TIMEOUT_MS: '120000' } },
    onFailure: (name, how, logFile) =>
      failures.push(`${name} ended by itself (${how}): ${readFileSync(logFile, 'utf8').slice(-600)}`),
  })
  room = roomOf(plant, clock)
  client = createClient({ urls: plant.cloudUrls, runtime, tally })
  auditor = await createAuditor(plant, room)
  plant.start()
}, 120_000)

// The test before may have cut the hub off.
beforeEach(untilItSells, 120_000)

afterAll(async () => {
  await auditor.close()
  await plant.close()
  rmSync(folder, { recursive: true })
})

async function untilItSells(): Promise<void> {
  const isUp = await waitUntilReady({
    clock,
    baseUrl: plant.cloudUrls[0]!,
    hubId: plant.hubId,
    timeoutMs: 60_000,
    isGivenUp: () => failures.length > 0,
  })
  expect(failures).toEqual([])
  expect(isUp).toBe(true)
}

/** `units` units of each of several products. */
const cart = (first: number, units: number) =>
  Array.from({ length: units }, (_, index) => ({ product_id: first + index, quantity: 1 }))

function customer(first: number, units: number): Promise<Customer> {
  return newCustomer({ plant, client, room }, `cut-off-${customers++}`, cart(first, units))
}

async function until(condition: () => Promise<boolean>, timeout = 60_000): Promise<void> {
  await vi.waitUntil(condition, { timeout, interval: 200 })
}

const hasReached = async ({ order }: Customer, status: OrderStatus): Promise<boolean> =>
  (await order()).processing_status >= status

/** Runs a command at the cloud's database, and returns its output. */
async function cli(...args: string[]): Promise<string> {
  const [node, ...main] = commandOf('cloud/cli/main')
  const env = { PATH: process.env['PATH'], DATABASE_URL: plant.databaseUrl }
  return (await promisify(execFile)(node, [...main, ...args], { env })).stdout
}

/** The order as the hub's own interface shows it. */
const atHub = async ({ orderId }: Customer) =>
  (await room.hub()).orders.find((order) => order.order_number === orderId)

const motionsSince = async (n: number): Promise<Motion[]> =>
  (await room.actuations()).filter((motion) => motion.n > n)
const lastMotion = async (): Promise<number> => (await room.actuations()).at(-1)?.n ?? 0
const dispensed = (motions: readonly Motion[]): number =>
  motions.filter(({ action }) => action === 'dispense').length

/** Opens the bins through the cloud and takes the units, until the order has ended. */
async function collect(buyer: Customer): Promise<void> {
  await until(async () => {
    const { processing_status: status } = await buyer.order()
    if (status === OrderStatus.READY) await buyer.open()
    if (status === OrderStatus.COLLECTING) await buyer.take()
    return status >= OrderStatus.COMPLETED
  })
}

/** A person cleans up; then all books must agree, from the start of the installation. */
async function expectBooksToAgree(): Promise<void> {
  await vi.waitUntil(async () => (await auditor.unfinished()) === undefined, { timeout: 60_000 })
  expect(await emptyAllBins({ room, clock })).toBe(true)
  await resolveUnconfirmed({ room, tally })
  await vi.waitUntil(async () => (await auditor.unfinished()) === undefined, { timeout: 60_000 })
  expect(violationsOf(await auditor.evidence())).toEqual([])
  expect(failures).toEqual([])
}

const openBin = (bin: number): Promise<ApiAnswer | undefined> =>
  client.once({
    name: 'open_bin',
    method: 'POST',
    path: `/api/v1/owners/controls/open_bin?bin=${bin}&hub=${plant.hubId}`,
    apiKey: plant.seed.owner.api_key,
  })

const detailsOf = (answer: ApiAnswer | undefined): unknown =>
  (answer?.body as { error: { details: unknown } } | undefined)?.error.details

test('an accepted order is dispensed and collected while the cloud is stopped, and is reported later', async () => {
  const before = await lastMotion()
  const buyer = await customer(1, 6)
  await buyer.pay()
  await until(async () => (await atHub(buyer)) !== undefined)
  plant.signal('cloud-1', 'SIGSTOP')
  expect(dispensed(await motionsSince(before))).toBeLessThan(6)

  await until(async () => (await atHub(buyer))?.phase === 'ready')
  expect(dispensed(await motionsSince(before))).toBe(6)
  await plant.halt('cloud-1')
  for (const bin of (await atHub(buyer))!.bins) {
    expect(await room.atHub(`/bins/${bin}/open`)).toBe(true)
    expect(await room.act({ action: 'take_items', target: `bin-${bin}` })).toBe(true)
  }
  await until(async () => (await atHub(buyer))?.phase === 'completed')

  plant.start('cloud-1')
  await until(() => hasReached(buyer, OrderStatus.COMPLETED))
  expect(await buyer.order()).toMatchObject({
    processing_status_name: 'COMPLETED',
    payment_status: 'completed',
  })
  expect(dispensed(await motionsSince(before))).toBe(6)
  await untilItSells()
  await expectBooksToAgree()
}, 120_000)

test('a command to an offline hub fails at once and never runs later', async () => {
  const before = await lastMotion()
  await plant.halt('hub')
  await until(async () => (await networkStatus()) !== 'connected')
  const asked = clock.monotonic()
  const answer = await openBin(2)
  expect(clock.monotonic() - asked).toBeLessThan(COMMAND_TIMEOUT_MS)
  expect(answer).toMatchObject({ status: 502, code: 'hardware_error' })
  expect(detailsOf(answer)).toMatchObject({ reason: 'offline' })

  plant.start('hub')
  await untilItSells()
  expect(await motionsSince(before)).toEqual([])
  await expectBooksToAgree()
}, 120_000)

test('a command that the line delays past its time is refused by the hub', async () => {
  const before = await lastMotion()
  const stale = plant.tap.staleOnly().size
  plant.proxy.stall(['down'], 2.5 * COMMAND_TIMEOUT_MS)
  const answer = await openBin(2)
  expect(answer).toMatchObject({ status: 504, code: 'hardware_error' })
  expect(detailsOf(answer)).toMatchObject({ reason: 'timeout', outcome: 'unknown' })
  await until(() => Promise.resolve(plant.tap.staleOnly().size === stale + 1))
  // A command that comes in time is executed after the hub has judged the late one.
  expect(await openBin(3)).toMatchObject({ status: 200 })
  expect((await motionsSince(before)).map(({ device, action }) => [device, action])).toEqual([
    ['bin-3', 'open_door'],
  ])
  // The cloud may have missed heartbeats during the delay.
  await untilItSells()
  await expectBooksToAgree()
}, 120_000)

test('on a line of 64 kbit/s a hub without a management port sends its log and an archive while an order goes on', async () => {
  plant.proxy.throttle(8000)
  const buyer = await customer(6, 3)
  const file = join(folder, 'bundle.tar.gz')
  const logs = cli('hubs', 'logs', String(plant.hubId), '--since', '10m')
  await buyer.pay()
  const bundle = cli('hubs', 'bundle', String(plant.hubId), '--to', file)
  await until(() => hasReached(buyer, OrderStatus.READY))
  await collect(buyer)
  const records = (await logs).trim().split('\n')
  expect(records.map((line) => JSON.parse(line) as object)).toContainEqual(
    expect.objectContaining({ level: 'info', message: 'the hub runs' }),
  )
  const stored = JSON.parse(await bundle) as { contents: string[]; size_bytes: number }
  expect(stored.contents).toEqual(expect.arrayContaining(['doctor.json', 'settings.json', 'log.jsonl']))
  const files = filesOfTar(gunzipSync(readFileSync(file)))
  expect(JSON.parse(files.get('doctor.json')!)).toMatchObject({ part: 'hub' })
  expect([...files.values()].join('\n')).not.toContain(plant.hubToken)
  expect([...files.values()].join('\n')).not.toContain(plant.seed.mqtt_password)
  plant.proxy.clearFaults()
  await expectBooksToAgree()
}, 120_000)

test('a hub with a deleted store continues from the cloud’s and controllers’ data, and dispenses nothing twice', async () => {
  const ready = await customer(11, 2)
  await ready.pay()
  await until(() => hasReached(ready, OrderStatus.READY))
  const before = await lastMotion()
  const begun = await customer(15, 8)
  await begun.pay()
  await until(async () => dispensed(await motionsSince(before)) >= 2)
  await plant.halt('hub')
  await auditor.evidence()
  for (const suffix of ['', '-wal', '-shm']) rmSync(plant.places.journal + suffix, { force: true })
  plant.start('hub')

  await collect(ready)
  expect(await ready.order()).toMatchObject({
    processing_status_name: 'COMPLETED',
    payment_status: 'completed',
  })
  await collect(begun)
  expect(dispensed(await motionsSince(before))).toBeLessThan(8)
  const { items, payment_status } = await begun.order()
  expect(items.some((item) => item.qty_dropped < item.qty)).toBe(true)
  expect(['partially_refunded', 'refunded']).toContain(payment_status)

  await untilItSells()
  // From another cabinet: a unit may still hang in the first one.
  const next = await customer(40, 2)
  await next.pay()
  await collect(next)
  expect(await next.order()).toMatchObject({ processing_status_name: 'COMPLETED' })
  await expectBooksToAgree()
}, 120_000)

test('a hub with a store restored from an older copy continues, and dispenses nothing twice', async () => {
  await plant.halt('hub')
  const copy = join(folder, 'copy.sqlite')
  const suffixes = ['', '-wal'].filter((suffix) => existsSync(plant.places.journal + suffix))
  for (const suffix of suffixes) copyFileSync(plant.places.journal + suffix, copy + suffix)
  plant.start('hub')
  await untilItSells()

  const before = await lastMotion()
  const done = await customer(21, 2)
  await done.pay()
  await collect(done)
  const ready = await customer(23, 2)
  await ready.pay()
  await until(() => hasReached(ready, OrderStatus.READY))
  const begun = await customer(25, 8)
  await begun.pay()
  await until(async () => dispensed(await motionsSince(before)) >= 6)
  await plant.halt('hub')
  await auditor.evidence()
  for (const suffix of ['', '-wal', '-shm']) rmSync(plant.places.journal + suffix, { force: true })
  for (const suffix of suffixes) copyFileSync(copy + suffix, plant.places.journal + suffix)
  plant.start('hub')

  await collect(ready)
  await collect(begun)
  expect(await ready.order()).toMatchObject({ processing_status_name: 'COMPLETED' })
  expect(dispensed(await motionsSince(before))).toBeLessThan(12)
  await untilItSells()
  const next = await customer(42, 2)
  await next.pay()
  await collect(next)
  expect(await next.order()).toMatchObject({ processing_status_name: 'COMPLETED' })
  await expectBooksToAgree()
}, 120_000)

async function networkStatus(): Promise<unknown> {
  const answer = await client.once({
    name: 'health',
    method: 'GET',
    path: `/api/v1/owners/hubs/get_hub_health/?hub_id=${plant.hubId}`,
    apiKey: plant.seed.owner.api_key,
  })
  return (answer?.body as { network_status?: unknown } | undefined)?.network_status
}
