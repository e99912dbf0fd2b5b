import type { PaymentResult } from '../../../protocol/contract/consumer-payments.ts'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import type { ApiRequest, Client } from './client.ts'
import type { Plant } from './plant.ts'
import type { Room } from './room.ts'

/** A customer with one order, driven step by step by a test. */
export interface Customer {
  readonly orderId: number
  readonly bearer: string
  order: () => Promise<Order>
  pay(method?: string): Promise<PaymentResult>
  /** Asks the cloud to open the bins; returns whether it did. */
  open(): Promise<boolean>
  /** Takes the units in the order's open bins. */
  take(): Promise<void>
}

/** A new guest with a filled cart. */
export async function newCustomer(
  { plant, client, room }: { plant: Plant; client: Client; room: Room },
  name: string,
  items: readonly { product_id: number; quantity: number }[],
): Promise<Customer> {
  const { hubId } = plant
  let bearer = ''
  async function ask<T>(method: ApiRequest['method'], path: string, body?: object): Promise<T> {
    const request = { name: path, method, path, bearer, ...(body && { body }) }
    const answer = await client.withRetries(request)
    if (answer === undefined || answer.status >= 400)
      throw new Error(`${method} ${path}: ${answer ? JSON.stringify(answer.body) : 'no answer'}`)
    return answer.body as T
  }
  const identity = { sub: name, anonymous: true }
  bearer = (await ask<{ access_token: string }>('POST', '/demo/identity/token', identity)).access_token
  const { user_id: userId } = await ask<{ user_id: number }>('POST', '/users/user/bootstrap/guest')
  const { order_id: orderId } = await ask<Order>('POST', `/users/${userId}/orders?hub_id=${hubId}`)
  const own = `/users/${userId}/orders/${orderId}`
  for (const item of items) await ask('PUT', `${own}/order_item?hub_id=${hubId}`, item)
  const order = (): Promise<Order> => ask('GET', `${own}?hub_id=${hubId}`)
  return {
    orderId,
    bearer,
    order,
    pay: (method = 'pm_card_visa') =>
      ask('POST', '/users/payments/pay', { order_id: orderId, payment_method_id: method }),
    async open() {
      const path = `${own}/open-delivery?hub_id=${hubId}`
      const answer = await client.once({ name: 'open', method: 'POST', path, bearer })
      return answer?.status === 200
    },
    async take() {
      for (const bin of (await order()).bins) await room.act({ action: 'take_items', target: `bin-${bin}` })
    },
  }
}
