import type { HubHealthReport, HubSummary } from '../../../protocol/contract/owner-hubs.ts'
import type { Product } from '../../../protocol/contract/consumer-products.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { sleep } from '../../../protocol/model/runtime.ts'
import { newCustomer } from '../chaos/customer.ts'
import type { Client } from '../chaos/client.ts'
import type { Room } from '../chaos/room.ts'
import type { AbuseWorld } from './abuser.ts'

/** The state of the shop for an honest customer at one moment. */
export interface Sample {
  /** Units that the list of products offers. */
  offered: number
  /** Number of free bins. */
  free: number
  takesOrders: boolean
}

export interface Visit {
  /** The order's last status, or the reason why there is no order. */
  end: string
  /** Time from the first call to the products, in milliseconds. */
  ms: number
}

export interface Honest extends Omit<AbuseWorld, 'ask'> {
  client: Client
  room: Room
}

/** Reads the shop as an honest customer and its owner see it. */
export async function sample({ client, plant }: Honest): Promise<Sample | undefined> {
  const apiKey = plant.seed.owner.api_key
  const get = (name: string, path: string) => client.once({ name, method: 'GET', path, apiKey })
  const products = await client.once({
    name: 'list',
    method: 'GET',
    path: `/hubs/${plant.hubId}/products?size=100`,
  })
  const health = await get('health', `/api/v1/owners/hubs/get_hub_health/?hub_id=${plant.hubId}`)
  const info = await get('info', `/api/v1/owners/hubs/get_hub_info/?hub_id=${plant.hubId}`)
  if (products?.status !== 200 || health?.status !== 200 || info?.status !== 200) return undefined
  const { bins, online } = health.body as HubHealthReport
  return {
    offered: (products.body as Product[]).reduce((sum, { quantity }) => sum + quantity, 0),
    free: bins.filter((bin) => bin.order_id === null && bin.reserved_for_order === null).length,
    takesOrders: online && (info.body as HubSummary).hub_status === 'active',
  }
}

/** An honest customer buys one unit and takes it. */
export async function buyOne(world: Honest, name: string): Promise<Visit> {
  const { runtime, chance, products } = world
  const { clock } = runtime
  const begun = clock.monotonic()
  const ended = (end: string): Visit => ({ end, ms: clock.monotonic() - begun })
  try {
    const customer = await newCustomer(world, name, [{ product_id: chance.pick(products), quantity: 1 }])
    await customer.pay()
    for (const end = clock.monotonic() + 90_000; clock.monotonic() < end; await sleep(clock, 400)) {
      const { processing_status: status, processing_status_name: word } = await customer.order()
      if (status >= OrderStatus.COMPLETED || status === OrderStatus.NEW) return ended(word)
      if (status >= OrderStatus.READY && (await customer.open())) await customer.take()
    }
    return ended('waited 90 s')
  } catch (error) {
    const { code } = /"code":"(?<code>[a-z_]+)"/.exec(String(error))?.groups ?? {}
    return ended(code ?? String(error).slice(0, 80))
  }
}
