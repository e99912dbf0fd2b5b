import type { Order } from '../../protocol/contract/consumer-orders.ts'
import type { Client, Failure, Result } from '../../protocol/client/client.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { guestWithCart } from '../demo/guest.ts'
import { type Bench, StepError } from './bench.ts'
import type { Place, Step } from './schema.ts'

/** The result of a call, as `expect: { answer: … }` checks it. */
export type Answer = { status: number; code?: string; message?: string; data?: unknown }

type CustomerStep = Extract<Step, { kind: 'cart' | 'pay' | 'open' | 'take' | 'cancel' }>

interface Customer {
  name: string
  client: Client
  userId: number
  orderId: number
}

export const answerOf = (result: Result<unknown>): Answer =>
  result.ok ? { status: result.status, data: result.data } : failed(result.error)

const failed = ({ status, code, message }: Failure): Answer => ({ status, code, message })

/** The customers of a bench: guests of the cloud, by their names in scenarios. */
export class Customers {
  readonly #bench: Bench
  readonly #named = new Map<string, Customer>()
  /** The customers of this scenario and earlier ones. */
  #known: Customer[] = []

  constructor(bench: Bench) {
    this.#bench = bench
  }

  async act(step: CustomerStep): Promise<Answer> {
    switch (step.kind) {
      case 'cart': {
        const customer = this.#named.get(step.what.customer) ?? (await this.#come(step.what.customer))
        let answer: Answer = { status: 200 }
        for (const { row, units } of step.what.items) {
          const result = await customer.client.call('PUT /users/{user_id}/orders/{order_id}/order_item', {
            params: this.#paramsOf(customer),
            query: { hub_id: this.#bench.hubId },
            body: { product_id: await this.#productAt(row), quantity: units },
          })
          answer = answerOf(result)
          if (!result.ok) return answer
        }
        return answer
      }
      case 'pay': {
        const customer = this.#customerOf(step.what.customer)
        return answerOf(
          await customer.client.call('POST /users/payments/pay', {
            body: { order_id: customer.orderId, payment_method_id: step.what.method },
          }),
        )
      }
      case 'open':
        return answerOf(await this.#open(this.#customerOf(step.what.customer)))
      case 'cancel':
        return answerOf(await this.#cancel(this.#customerOf(step.what.customer)))
      case 'take':
        return { status: 200, data: { units: await this.#take(this.#customerOf(step.what.customer)) } }
    }
  }

  order(name: string): Promise<Order> {
    return this.#orderOf(this.#customerOf(name))
  }

  /** Customers with open orders take their goods or cancel, so that the next scenario begins without them. */
  async leave(): Promise<void> {
    const stay: Customer[] = []
    for (const customer of this.#known) {
      const { processing_status: status } = await this.#orderOf(customer)
      if (status >= OrderStatus.COMPLETED) continue
      stay.push(customer)
      if (status < OrderStatus.PREPARING) await this.#cancel(customer)
      else if (status >= OrderStatus.READY) {
        await this.#open(customer)
        // The next round reports a failure.
        await this.#take(customer).catch(() => 0)
      }
    }
    this.#known = stay
    if (stay.length > 0) throw new StepError(`${stay[0]!.name}'s order of an earlier scenario is not over`)
  }

  /** Removes the names, so that a scenario begins with new customers. */
  forget(): void {
    this.#named.clear()
  }

  #customerOf(name: string): Customer {
    const customer = this.#named.get(name)
    if (!customer) throw new StepError(`${name} has no cart yet`)
    return customer
  }

  async #come(name: string): Promise<Customer> {
    const { baseUrl } = this.#bench.cloud()
    const subject = `scenario-${randomHex(this.#bench.random, 6)}-${name}`
    const cart = await guestWithCart(baseUrl, { subject, hubId: this.#bench.hubId })
    const customer = { name, ...cart }
    this.#named.set(name, customer)
    this.#known.push(customer)
    return customer
  }

  async #productAt(place: Place): Promise<number> {
    const { cabinet, shelf, row } = place
    const { rows } = await this.#bench.state()
    const found = rows.find((one) => one.cabinet === cabinet && one.shelf === shelf && one.row === row)
    if (found?.product_id == null)
      throw new StepError(`no product is known to stand at ${cabinet}/${shelf}/${row}`)
    return found.product_id
  }

  #paramsOf({ userId, orderId }: Customer) {
    return { user_id: userId, order_id: orderId }
  }

  async #orderOf(customer: Customer): Promise<Order> {
    const result = await customer.client.call('GET /users/{user_id}/orders/{order_id}', {
      params: this.#paramsOf(customer),
      query: { hub_id: this.#bench.hubId },
    })
    if (!result.ok) throw new StepError(`${customer.name}'s order cannot be read: ${result.error.message}`)
    return result.data
  }

  #open(customer: Customer): Promise<Result<unknown>> {
    return customer.client.call('POST /users/{user_id}/orders/{order_id}/open-delivery', {
      params: this.#paramsOf(customer),
      query: { hub_id: this.#bench.hubId },
    })
  }

  #cancel(customer: Customer): Promise<Result<unknown>> {
    return customer.client.call('DELETE /users/{user_id}/orders/{order_id}', {
      params: this.#paramsOf(customer),
    })
  }

  /** Takes the contents of the order's bins; returns the number of units. */
  async #take(customer: Customer): Promise<number> {
    let units = 0
    for (const bin of (await this.#orderOf(customer)).bins) {
      const act = { action: 'take_items', target: `bin-${bin}` }
      const taken = await this.#bench.simulator.ask<{ units: number }>(
        'POST',
        `/api/hubs/${this.#bench.hubId}/act`,
        act,
      )
      units += taken.units
    }
    return units
  }
}
