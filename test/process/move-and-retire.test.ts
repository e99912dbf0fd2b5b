import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { OwnerPayment } from '../../protocol/contract/owner-reports.ts'
import { OrderStatus as S } from '../../protocol/model/order-status.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { violationsOf } from '../invariants/check.ts'
import type { Violation } from '../invariants/evidence.ts'
import { missing } from '../support/services.ts'
import { balanced, type Sale } from './chaos/balanced.ts'
import { createAuditor, untilQuiet } from './chaos/collect.ts'
import { collect, install, WAIT_MS } from './chaos/installation.ts'
import { attempt, operate } from './chaos/operator.ts'
import { createPostgresDatabase } from './chaos/postgres.ts'
import { emptyAllBins } from './chaos/staff.ts'
import type { PlantOptions } from './chaos/plant.ts'

const runtime = systemRuntime()
const { clock } = runtime
const NEW = 'Harbour Hotels'

interface Answer {
  status: number
  json: Record<string, unknown>
}

/** An owner's program: calls with a key, and a receiver of the events `order.paid`. */
async function ownerAt(cloudUrl: string, key: string) {
  const paid: number[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const { data } = JSON.parse(text) as { data: { order_id: number } }
      if (!paid.includes(data.order_id)) paid.push(data.order_id)
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  async function call(method: string, path: string, body?: object): Promise<Answer> {
    const answer = await fetch(`${cloudUrl}/api/v1/owners/${path}`, {
      method,
      headers: { 'X-API-Key': key, Connection: 'close', ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
  }
  /** All payments of these orders at a hub, and of no earlier ones. */
  async function payments(hubId: number, after: number): Promise<OwnerPayment[]> {
    const found: OwnerPayment[] = []
    for (let cursor = ''; ;) {
      const page = (await call('GET', `payments?hub_id=${hubId}&limit=100${cursor}`)).json
      const rows = page['data'] as OwnerPayment[]
      found.push(...rows.filter(({ order_id }) => order_id > after))
      if (!page['has_more'] || rows.every(({ order_id }) => order_id <= after)) return found
      cursor = `&cursor=${String(page['next_cursor'])}`
    }
  }
  const ordersAt = async (hubId: number): Promise<number[]> => {
    const { json } = await call('GET', `hubs/all_orders_paginated/?hub_id=${hubId}&limit=100`)
    return (json['data'] as { id: number }[]).map(({ id }) => id)
  }
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  expect((await call('POST', 'webhooks', { url, event_types: ['order.paid'] })).status).toBe(201)
  return { call, payments, ordersAt, paid }
}

const inOrder = (ids: Iterable<number>): number[] => [...ids].toSorted((one, other) => one - other)

/** Moves hub 1 and retires hub 2, while customers buy at both. */
async function moveAndRetire(kind: PlantOptions['kind']): Promise<void> {
  const cloud = { WEBHOOK_ALLOW_PRIVATE: 'true' }
  const installation = await install({ kind, commands: new Map(), cloud })
  const { plant, room, come, reaches, becomes, sells, failures, tally } = installation
  const second = await installation.addHub()
  plant.start()
  await sells()
  second.plant.start()
  await sells(second.plant.hubId)
  const hubs = [
    { plant, room, closes: true },
    { ...second, closes: true },
  ]
  const auditors = await Promise.all(hubs.map((hub) => createAuditor(hub.plant, hub.room)))
  onTestFinished(async () => void (await Promise.all(auditors.map((auditor) => auditor.close()))))
  const a = await ownerAt(plant.cloudUrls[0]!, plant.seed.owner.api_key)
  const b = await ownerAt(plant.cloudUrls.at(-1)!, plant.seed.other_owner.api_key)
  const hub = async (id: number) => {
    const { owner, hub_status, desired_version } = await operate(plant, 'hubs', 'show', String(id))
    return { owner, hub_status, desired_version }
  }
  const own: number[] = []
  const buy = async (who: typeof come = come) => {
    const customer = await who(1)
    await customer.pay()
    own.push(customer.orderId)
    return customer
  }
  const first = await come(1)
  const sold: Sale[] = []

  const moving = await balanced(
    installation,
    async (sellsAgain) => {
      const past = await buy()
      await collect(installation, past)
      const [here, there] = [await buy(), await buy(second.come)]
      for (const customer of [here, there]) await reaches(customer, S.READY)
      const before = await hub(1)
      const refused = await attempt(plant, 'hubs', 'move', '1', '--owner', NEW)
      expect(refused).toMatchObject({
        status: 1,
        stdout: '',
        errors: expect.stringMatching(/unfinished order.*\d/) as string,
      })
      expect(await hub(1)).toEqual(before)
      expect((await b.call('GET', 'hubs/get_hub_info/?hub_id=1')).status).toBe(404)
      await collect(installation, here)

      await operate(plant, 'hubs', 'set', '1', '--maintenance', 'on')
      await becomes(
        'hub 1 is moved',
        async () => (await attempt(plant, 'hubs', 'move', '1', '--owner', NEW)).status === 0,
      )
      await sellsAgain(2)
      await operate(plant, 'hubs', 'set', '1', '--maintenance', 'off')
      await sells()
      const young = await buy()
      await collect(installation, young)
      await sellsAgain(1)
      // An order in flight at the other hub.
      expect((await there.order()).processing_status).toBe(S.READY)
      await collect(installation, there)

      for (const path of [
        'hubs/get_hub_info/?hub_id=1',
        'hubs/facings?hub_id=1',
        'hubs/get_hub_health?hub_id=1',
      ])
        expect([path, (await a.call('GET', path)).status]).toEqual([path, 404])
      expect((await a.call('POST', 'controls/open_bin?hub=1&bin=1')).status).toBe(404)
      expect((await b.call('GET', 'hubs/get_hub_info/?hub_id=1')).status).toBe(200)
      const [ofA, ofB] = [await a.ordersAt(1), await b.ordersAt(1)]
      expect(ofA).toEqual(expect.arrayContaining([past.orderId, here.orderId]))
      expect(ofA).not.toContain(young.orderId)
      expect(ofB).toContain(young.orderId)
      expect(ofB.filter((id) => ofA.includes(id) || id <= past.orderId)).toEqual([])
      expect((await b.call('GET', 'sales?hub_id=2')).status).toBe(404)
      expect((await b.payments(1, 0)).filter(({ order_id }) => order_id <= here.orderId)).toEqual([])
      expect((await b.call('POST', `orders/${past.orderId}/refund`, {})).status).toBe(404)
      expect((await a.call('POST', `orders/${young.orderId}/refund`, {})).status).toBe(404)
      expect((await a.call('POST', `orders/${past.orderId}/refund`, {})).status).toBe(200)
      expect((await a.call('GET', 'sales?hub_id=1')).json).toMatchObject({
        totals: { total_orders: expect.any(Number) as number },
      })
    },
    { hubs, shoppers: 2 },
  )
  sold.push(...moving.sold)
  expect(moving.failed).toEqual([])

  const late = await second.come()
  const retiring = await balanced(
    installation,
    async (sellsAgain) => {
      const faults = `${second.plant.simulatorUrl}/api/hubs/2/faults`
      const silent = { type: 'silent_port', target: 'cabinets-right' }
      expect((await fetch(faults, { method: 'POST', body: JSON.stringify(silent) })).ok).toBe(true)
      const openAlarms = async () =>
        (await a.call('GET', 'alarms?hub_id=2&state=open')).json['data'] as object[]
      const held = await buy(second.come)
      await reaches(held, S.READY)
      await becomes('hub 2 has an alarm', async () => (await openAlarms()).length > 0)
      const before = await hub(2)
      expect(await attempt(plant, 'hubs', 'retire', '2')).toMatchObject({
        status: 1,
        errors: expect.stringContaining('--force') as string,
      })
      expect(await hub(2)).toEqual(before)
      second.retires()
      expect(await operate(plant, 'hubs', 'retire', '2', '--force')).toMatchObject({ hub_id: 2 })
      expect(await late.pay().then(() => 'paid', String)).toContain('hub_not_accepting_orders')
      await sellsAgain(1)
      await becomes('the order is refunded', async () => (await held.order()).payment_status === 'refunded')
      expect(await openAlarms()).toEqual([])
      expect(await a.ordersAt(2)).toContain(held.orderId)
      expect((await a.call('GET', 'sales?hub_id=2')).status).toBe(200)
      // A hub with units in a bin keeps its login, so that it can report their removal.
      expect(await emptyAllBins({ room: second.room, clock })).toBe(true)
      await becomes('hub 2 erases its secrets', async () => {
        return (await operate(plant, 'hubs', 'retire', '2'))['secrets_erased'] === true
      })
      await sellsAgain(1)
    },
    { hubs, shoppers: 2 },
  )
  sold.push(...retiring.sold)
  expect(retiring.failed).toEqual([])
  expect(failures).toEqual([])

  await untilQuiet(auditors[0]!, clock, WAIT_MS)
  expect(await emptyAllBins({ room, clock })).toBe(true)
  expect(await untilQuiet(auditors[0]!, clock, WAIT_MS)).toBeUndefined()
  const evidence = await Promise.all(auditors.map((auditor) => auditor.evidence()))
  expect(violationsOf(evidence[0]!)).toEqual([])
  // The cloud ends the alarms of a retired hub, also of a controller that is still silent. What the hub writes after its login has
  // ended, for example that the door of its last bin was closed, reaches nobody.
  const ofRetired = ({ invariant, text }: Violation): boolean =>
    invariant === 'I14' || /^\d+ entries of the hub were never acknowledged$/.test(text)
  expect(violationsOf(evidence[1]!).filter((each) => !ofRetired(each))).toEqual([])

  // Each sale is in the books of exactly one owner, and both books together are the processor's, to the cent.
  const books = [
    [...(await a.payments(1, first.orderId)), ...(await a.payments(2, first.orderId))],
    await b.payments(1, first.orderId),
  ]
  const ordersIn = (rows: readonly OwnerPayment[]): number[] =>
    rows.filter(({ type }) => type === 'payment').map(({ order_id }) => order_id)
  const ids = books.flatMap(ordersIn)
  expect(inOrder(ids)).toEqual(inOrder(new Set([...own, ...sold.map(({ orderId }) => orderId)])))
  for (const { orderId, total } of sold)
    expect([
      orderId,
      books.flat().find(({ type, order_id }) => type === 'payment' && order_id === orderId)?.amount,
    ]).toEqual([orderId, total])
  const sum = (rows: readonly { amount: number }[]) => rows.reduce((all, { amount }) => all + amount, 0)
  const { intents, processorRefunds } = evidence[0]!.cloud
  const taken = sum(intents.filter(({ status }) => status === 'succeeded'))
  expect(sum(books.flat())).toBe(taken - sum(processorRefunds.filter(({ status }) => status === 'succeeded')))
  for (const [index, { paid }] of [a, b].entries())
    await becomes(`owner ${index + 1} has the events`, async () => {
      return JSON.stringify(inOrder(paid)) === JSON.stringify(inOrder(ordersIn(books[index]!)))
    })
  expect(tally.of('answer ').filter(([name]) => / 500\b/.test(name))).toEqual([])
}

test('a hub with sales is moved to another owner, another hub is retired, and every sale works; each owner has the books and events of that owner’s time, to the cent', async () => {
  if (missing('postgres') !== undefined || missing('mosquitto') !== undefined)
    return moveAndRetire({ type: 'bare' })
  const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
  onTestFinished(() => database.remove())
  return moveAndRetire({ type: 'at-scale', databaseUrl: database.url })
}, 480_000)
