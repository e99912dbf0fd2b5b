import { OrderStatus } from '../../protocol/model/order-status.ts'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'
import { z } from 'zod'

export interface CustomerOptions {
  clock: Clock
  baseUrl: string
  simulatorUrl: string
  hubId: number
}

const UNITS = 2
const POLL_MS = 100
const PATIENCE_MS = 60_000

const Order = z.object({
  order_id: z.int(),
  processing_status: z.int(),
  processing_status_name: z.string(),
  bins: z.array(z.int()),
})
const Products = z.array(z.object({ id: z.int(), quantity: z.int() }))

/**
 * A product for each order, one after another, as long as the shelves have enough; some units of each remain.
 */
export async function findProducts({ baseUrl, hubId }: CustomerOptions): Promise<number[]> {
  const products = Products.parse(await ask('GET', `${baseUrl}/hubs/${hubId}/products?size=100`))
  const rounds = Math.max(0, ...products.map(({ quantity }) => Math.floor(quantity / UNITS)))
  return Array.from({ length: rounds }, (_, round) =>
    products.filter(({ quantity }) => quantity >= (round + 2) * UNITS).map(({ id }) => id),
  ).flat()
}

/** A guest buys two units, opens the bin and takes them. Throws if that fails. */
export async function buy(options: CustomerOptions, name: string, product: number): Promise<void> {
  await (await place(options, name, product)).fetch()
}

/** A guest pays for two units; `fetch` waits for them, opens the bin and takes them. */
export async function place(
  options: CustomerOptions,
  name: string,
  product: number,
): Promise<{ fetch(): Promise<void> }> {
  const { clock, baseUrl, simulatorUrl, hubId } = options
  const identity = { sub: name, anonymous: true }
  const token = z.object({ access_token: z.string() })
  const { access_token: bearer } = token.parse(
    await ask('POST', `${baseUrl}/demo/identity/token`, { body: identity }),
  )
  const guest = await ask('POST', `${baseUrl}/users/user/bootstrap/guest`, { bearer })
  const orders = `${baseUrl}/users/${z.object({ user_id: z.int() }).parse(guest).user_id}/orders`
  const { order_id } = Order.parse(await ask('POST', `${orders}?hub_id=${hubId}`, { bearer }))
  const order = `${orders}/${order_id}`
  const at = `?hub_id=${hubId}`
  await ask('PUT', `${order}/order_item${at}`, { bearer, body: { product_id: product, quantity: UNITS } })
  const payment = { order_id, payment_method_id: 'pm_card_visa' }
  await ask('POST', `${baseUrl}/users/payments/pay`, { bearer, body: payment })
  return {
    async fetch() {
      const { bins } = await until(OrderStatus.READY)
      await ask('POST', `${order}/open-delivery${at}`, { bearer })
      for (const bin of bins)
        await ask('POST', `${simulatorUrl}/api/hubs/${hubId}/act`, {
          body: { action: 'take_items', target: `bin-${bin}` },
        })
      await until(OrderStatus.COMPLETED)
    },
  }

  async function until(status: number): Promise<z.infer<typeof Order>> {
    for (const end = clock.monotonic() + PATIENCE_MS; clock.monotonic() < end; await sleep(clock, POLL_MS)) {
      const seen = Order.parse(await ask('GET', `${order}${at}`, { bearer }))
      if (seen.processing_status >= status && seen.processing_status <= OrderStatus.COMPLETED) return seen
      if (seen.processing_status > OrderStatus.COMPLETED)
        throw new Error(`order ${order_id} ended ${seen.processing_status_name}`)
    }
    throw new Error(`order ${order_id} does not come to an end`)
  }
}

/** The JSON of the answer; undefined if it is empty. Throws if the call failed. */
export async function ask(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  url: string,
  { bearer, body }: { bearer?: string; body?: object } = {},
): Promise<unknown> {
  const headers = {
    ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
    ...(body && { 'Content-Type': 'application/json' }),
  }
  const response = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`)
  const text = await response.text()
  return text === '' ? undefined : (JSON.parse(text) as unknown)
}
