import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { OrderStatus as S } from '../../../protocol/model/order-status.ts'
import { holdsWithin, sleep } from '../../../protocol/model/runtime.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { answers, waitUntilReady } from '../../../simulator/demo/programs.ts'
import { createClient } from './client.ts'
import { newCustomer, type Customer } from './customer.ts'
import { createPlant, type PlantOptions } from './plant.ts'
import type { ProgramName } from './plant-settings.ts'
import { roomOf } from './room.ts'
import { Tally } from './tally.ts'

const runtime = systemRuntime()
const { clock } = runtime
export const WAIT_MS = 120_000

/** An order may wait in each state for as long as the test needs. */
const patient = {
  IDLE_ORDER_MS: '1800000',
  PAYMENT_HOLD_MS: '1800000',
  START_WITHIN_MS: '600000',
  PREPARE_TIMEOUT_MS: '600000',
  UNCLAIMED_TIMEOUT_MS: '1800000',
  ONLINE_WITHIN_MS: '60000',
}

interface InstallOptions extends Pick<PlantOptions, 'kind' | 'seedCommand'> {
  /** Commands of programs. Default: the present build. The next start of a program reads the map. */
  commands: Map<ProgramName, readonly string[]>
  /** Settings of the clouds, in addition to the test's own. */
  cloud?: Readonly<Record<string, string>>
}

/** An installation that a test changes step by step, while customers use it. */
export async function install({ kind, seedCommand, commands, cloud }: InstallOptions) {
  const data = mkdtempSync(join(tmpdir(), 'larder-installation-'))
  const failures: string[] = []
  const plant = await createPlant({
    runtime,
    folder: data,
    kind,
    speed: 6,
    ...(seedCommand && { seedCommand }),
    commandOf: (name) => commands.get(name),
    settings: { cloud: { ...patient, DRAIN_MS: '1500', ...cloud } },
    onFailure: (name, how, logFile) =>
      failures.push(`${name} ended by itself (${how}): ${readFileSync(logFile, 'utf8').slice(-600)}`),
  })
  onTestFinished(async () => {
    await plant.close()
    rmSync(data, { recursive: true, force: true })
  })
  const tally = new Tally()
  const room = roomOf(plant, clock)
  const client = createClient({ urls: plant.cloudUrls, runtime, tally })
  const products = [...new Set(plant.seed.shelves.map(({ product_id }) => product_id))]
  let number = 0
  const come = (quantity: number): Promise<Customer> => {
    const items = [{ product_id: products[number % products.length]!, quantity }]
    return newCustomer({ plant, client, room }, `customer-${++number}`, items)
  }
  const becomes = (what: string, condition: () => Promise<boolean>): Promise<void> =>
    holdsWithin(clock, WAIT_MS, condition).then((holds) =>
      expect([what, holds, failures]).toEqual([what, true, []]),
    )
  const reaches = (customer: Customer, status: S): Promise<void> =>
    becomes(`order ${customer.orderId} reaches ${status}`, async () => {
      return (await customer.order()).processing_status >= status
    })
  /** Customers can buy at every cloud. */
  const sells = (): Promise<void> =>
    becomes('the hub sells', async () => {
      const ready = plant.cloudUrls.map((baseUrl) =>
        waitUntilReady({ clock, baseUrl, hubId: plant.hubId, timeoutMs: 1000, isGivenUp: () => false }),
      )
      return (await Promise.all(ready)).every(Boolean)
    })
  const welcomed = (): Promise<void> =>
    becomes('the hub is welcomed', async () => (await room.hub()).sync.phase === 'welcomed')
  const serves = (index = 0): Promise<void> =>
    becomes('the cloud serves', () => answers(`${plant.cloudUrls[index]}/readyz`))
  /** Stops each cloud in turn, and starts it after `change`, as an operator does behind a balancer. */
  async function roll(change: (name: ProgramName) => void): Promise<void> {
    for (const [index] of plant.cloudUrls.entries()) {
      const name = `cloud-${index + 1}` as ProgramName
      await plant.stop(name)
      change(name)
      plant.start(name)
      await serves(index)
      // Two more checks of the balancer.
      await sleep(clock, 2000)
    }
  }
  return { plant, room, client, tally, failures, come, becomes, reaches, welcomed, serves, sells, roll }
}
export type Installation = Awaited<ReturnType<typeof install>>

export async function collect({ becomes, reaches }: Installation, customer: Customer): Promise<void> {
  await reaches(customer, S.READY)
  await becomes(`order ${customer.orderId} ends`, async () => {
    if ((await customer.order()).processing_status >= S.COMPLETED) return true
    await customer.open()
    await customer.take()
    return false
  })
}

interface Calls {
  sales: number
  /** Calls without an answer, and errors other than 429 or 503 with Retry-After and conflicts of a sale, such as a full bin. */
  failed: string[]
}

/** Guests buy and collect during `work`, through a balancer that calls the processes with `/readyz` 200. */
export async function balanced({ plant, room }: Installation, work: () => Promise<void>): Promise<Calls> {
  const calls: Calls = { sales: 0, failed: [] }
  const ready = new Set<string>()
  const shop = { isOpen: true }
  let turn = 0
  let carts = 0
  const check = async (url: string): Promise<void> => {
    for (; shop.isOpen; await sleep(clock, 200))
      if (await answers(`${url}/readyz`)) ready.add(url)
      else ready.delete(url)
  }
  /** The answer's body; undefined if the call was refused for a reason of the sale, such as a full bin. */
  async function call<T>(
    method: string,
    path: string,
    bearer = '',
    body: object = {},
  ): Promise<T | undefined> {
    const headers = {
      Authorization: `Bearer ${bearer}`,
      'Content-Type': 'application/json',
      ...(method === 'POST' && { 'Idempotency-Key': uuidv7(runtime) }),
    }
    const init = { method, headers, ...(method !== 'GET' && { body: JSON.stringify(body) }) }
    for (;;) {
      const urls = [...ready]
      const answer =
        urls.length === 0
          ? undefined
          : await fetch(urls[turn++ % urls.length]! + path, init).catch((error: unknown) => String(error))
      if (typeof answer === 'string') calls.failed.push(`${method} ${path}: ${answer}`)
      else if (answer) {
        const text = await answer.text()
        if (answer.ok) return JSON.parse(text) as T
        if (answer.status === 409 && !text.includes('hub_not_accepting_orders')) return undefined
        if (![429, 503].includes(answer.status) || !answer.headers.has('Retry-After'))
          calls.failed.push(`${method} ${path}: ${answer.status} ${text}`)
      }
      await sleep(clock, 200)
    }
  }
  async function buy(name: string): Promise<void> {
    const identity = { sub: name, anonymous: true }
    const token = await call<{ access_token: string }>('POST', '/demo/identity/token', '', identity)
    const bearer = token!.access_token
    const { user_id: user } = (await call<{ user_id: number }>(
      'POST',
      '/users/user/bootstrap/guest',
      bearer,
    ))!
    const at = `hub_id=${plant.hubId}`
    while (shop.isOpen) {
      const { order_id } = (await call<Order>('POST', `/users/${user}/orders?${at}`, bearer))!
      const own = `/users/${user}/orders/${order_id}`
      const { product_id } = plant.seed.shelves[carts++ % plant.seed.shelves.length]!
      await call('PUT', `${own}/order_item?${at}`, bearer, { product_id, quantity: 1 })
      const payment = { order_id, payment_method_id: 'pm_card_visa' }
      // All bins may be in use.
      while (shop.isOpen && !(await call('POST', '/users/payments/pay', bearer, payment)))
        await sleep(clock, 500)
      const ended = await holdsWithin(clock, WAIT_MS, async () => {
        const order = (await call<Order>('GET', `${own}?${at}`, bearer))!
        if (order.processing_status === S.READY) await call('POST', `${own}/open-delivery?${at}`, bearer)
        for (const bin of order.bins) await room.act({ action: 'take_items', target: `bin-${bin}` })
        return order.processing_status >= S.COMPLETED || (!shop.isOpen && order.processing_status === S.NEW)
      })
      if (!ended) calls.failed.push(`order ${order_id} of ${name} does not end`)
      calls.sales++
    }
  }
  const checks = plant.cloudUrls.map(check)
  const shoppers = [1, 2, 3].map((one) => buy(`balanced-${one}`))
  await work().finally(() => (shop.isOpen = false))
  await Promise.all(shoppers)
  await Promise.all(checks)
  return calls
}
