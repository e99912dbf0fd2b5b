import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { OrderStatus as S } from '../../../protocol/model/order-status.ts'
import { holdsWithin, sleep } from '../../../protocol/model/runtime.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { answers } from '../../../simulator/demo/programs.ts'
import { WAIT_MS, type Installation } from './installation.ts'
import type { Plant } from './plant.ts'
import type { Room } from './room.ts'

const runtime = systemRuntime()
const { clock } = runtime

export interface Sale {
  hubId: number
  orderId: number
  status: S
  /** The customer's charge in cents. */
  total: number
}

export interface Calls {
  sales: number
  sold: Sale[]
  /**
   * Calls without an answer, and errors. 503 with Retry-After, 429, and conflicts of a sale, such as a full bin, do not
   * count. Paid orders that were neither collected nor refunded count.
   */
  failed: string[]
}

export interface BalancedHub {
  plant: Pick<Plant, 'hubId' | 'seed'>
  room: Room
  /** The test stops its sales for a time, or for good: refusals do not count. */
  closes?: boolean
  /** The test restarts its program: refusals, and commands without an answer, do not count during a restart that overlaps them. */
  restarts?: { isNow: boolean; begun: number }
}

interface BalancedOptions {
  /** Hubs with customers. Default: the installation's own. */
  hubs?: readonly BalancedHub[]
  /** Number of customers of each hub. */
  shoppers?: number
  /** The identity token of a customer, read before each call. Default: a token of the demo's issuer. */
  tokenOf?: (name: string) => Promise<string>
}

/** Guests buy and collect during `work`, through a balancer that calls the processes with `/readyz` 200. */
export async function balanced(
  { plant, room }: Pick<Installation, 'plant' | 'room'>,
  work: (sellsAgain: (hubId: number) => Promise<void>) => Promise<void>,
  { hubs = [{ plant, room }], shoppers = 3, tokenOf }: BalancedOptions = {},
): Promise<Calls> {
  const calls: Calls = { sales: 0, sold: [], failed: [] }
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
    { bearer = '', body = {}, at }: { bearer?: string; body?: object; at?: BalancedHub } = {},
  ): Promise<T | undefined> {
    // The cloud stores a refusal below 500: a later call with the same key gets it again.
    let key = uuidv7(runtime)
    const { isNow: isRestarting = false, begun = 0 } = at?.restarts ?? {}
    for (let unanswered = 0; ; await sleep(clock, 200)) {
      const urls = [...ready]
      if (urls.length === 0) continue
      const headers = {
        Authorization: `Bearer ${bearer}`,
        'Content-Type': 'application/json',
        Connection: 'close',
        ...(method === 'POST' && { 'Idempotency-Key': key }),
      }
      const init = { method, headers, ...(method !== 'GET' && { body: JSON.stringify(body) }) }
      const answer = await fetch(urls[turn++ % urls.length]! + path, init).then(
        async (response) => ({ response, text: await response.text() }),
        (error: unknown) => String(error),
      )
      if (typeof answer === 'string') {
        // A reader repeats a read; a balancer does so, too.
        if (method !== 'GET' || ++unanswered > 1) calls.failed.push(`${method} ${path}: ${answer}`)
        continue
      }
      const { response, text } = answer
      if (response.ok) return JSON.parse(text) as T
      const restarts = isRestarting || (at?.restarts?.begun ?? 0) > begun
      const closes = restarts || at?.closes === true
      if (response.status === 409 && (closes || !text.includes('hub_not_accepting_orders'))) return undefined
      // The command may have been executed.
      if (response.status === 504 && restarts) return undefined
      if (response.status !== 429 && (response.status !== 503 || !response.headers.has('Retry-After')))
        calls.failed.push(`${method} ${path}: ${response.status} ${text}`)
      if (response.status < 500) key = uuidv7(runtime)
      if (response.status === 429 || text.includes('hub_offline')) await sleep(clock, 4000)
    }
  }
  const demoToken = async (sub: string): Promise<string> => {
    const body = { sub, anonymous: true }
    return (await call<{ access_token: string }>('POST', '/demo/identity/token', { body }))!.access_token
  }
  async function buy(name: string, hub: BalancedHub): Promise<void> {
    const {
      plant: { hubId, seed },
      room: its,
    } = hub
    const ofDemo = tokenOf ? '' : await demoToken(name)
    const ask = async <T>(method: string, path: string, body?: object) =>
      call<T>(method, path, {
        bearer: (await tokenOf?.(name)) ?? ofDemo,
        at: hub,
        ...(body && { body }),
      })
    const guest = await ask<{ user_id: number }>('POST', '/users/user/bootstrap/guest')
    const at = `hub_id=${hubId}`
    while (shop.isOpen) {
      const order = await ask<Order>('POST', `/users/${guest!.user_id}/orders?${at}`)
      const { product_id } = seed.shelves[carts++ % seed.shelves.length]!
      const own = order && `/users/${guest!.user_id}/orders/${order.order_id}`
      const item = { product_id, quantity: 1 }
      if (own === undefined || !(await ask('PUT', `${own}/order_item?${at}`, item))) {
        await sleep(clock, 500)
        continue
      }
      const { order_id } = order!
      const payment = { order_id, payment_method_id: 'pm_card_visa' }
      // All bins may be in use.
      while (shop.isOpen && !(await ask('POST', '/users/payments/pay', payment))) await sleep(clock, 500)
      let seen = order!
      const hasEnded = await holdsWithin(clock, WAIT_MS, async () => {
        seen = (await ask<Order>('GET', `${own}?${at}`))!
        if (seen.processing_status === S.READY) await ask('POST', `${own}/open-delivery?${at}`)
        for (const bin of seen.bins) await its.act({ action: 'take_items', target: `bin-${bin}` })
        if (!shop.isOpen && seen.processing_status === S.NEW) return true
        return (
          seen.processing_status === S.COMPLETED ||
          (seen.processing_status > S.COMPLETED && seen.payment_status === 'refunded')
        )
      })
      const { processing_status: status, total } = seen
      if (!hasEnded)
        calls.failed.push(`order ${order_id} of ${name} does not end: ${status} ${seen.payment_status}`)
      if (status === S.NEW) continue
      calls.sold.push({ hubId, orderId: order_id, status, total })
      calls.sales++
    }
  }
  const checks = plant.cloudUrls.map(check)
  const visits = hubs.flatMap((hub) =>
    Array.from({ length: shoppers }, (_, index) => buy(`balanced-${hub.plant.hubId}-${index}`, hub)),
  )
  /** Waits for one more sale of a hub. */
  async function sellsAgain(hubId: number): Promise<void> {
    const countOf = () => calls.sold.filter((sale) => sale.hubId === hubId).length
    const before = countOf()
    const sells = await holdsWithin(clock, WAIT_MS, () => Promise.resolve(countOf() > before))
    if (!sells) throw new Error(`hub ${hubId} sells nothing more: ${calls.failed.join('\n')}`)
  }
  await work(sellsAgain).finally(() => (shop.isOpen = false))
  await Promise.all(visits)
  await Promise.all(checks)
  return calls
}
