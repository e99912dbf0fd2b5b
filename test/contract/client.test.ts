import { expect, test } from 'vitest'
import { createClient, unwrap, type Client, type ClientOptions } from '../../protocol/client/client.ts'
import { followOrder } from '../../protocol/client/examples/follow-order.ts'
import { filled, sold, whatToBring } from '../../protocol/client/examples/restock.ts'
import { sellAtTill } from '../../protocol/client/examples/till.ts'
import { surroundings } from '../../protocol/client/system.ts'
import { scopes } from '../../protocol/model/scopes.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { onEachDatabase } from '../world/database.ts'
import { isLongRun } from '../support/long-tests.ts'
import { reportBins } from '../world/seeds.ts'
import { drop } from '../world/shop.ts'
import { healthy } from '../world/health.ts'
import { openService, type Service } from '../world/service.ts'

type Fetch = NonNullable<NonNullable<ClientOptions['system']>['fetch']>

/** Calls the service without sockets. */
const within =
  ({ cloud }: Service): Fetch =>
  async (url, init) =>
    cloud.app.request(url, init)

const clientOf = (service: Service, options: Partial<ClientOptions>, fetch = within(service)): Client =>
  createClient({
    baseUrl: 'http://larder.test',
    ...options,
    system: { fetch, now: () => service.shop.clock.now(), ...options.system },
  })

async function keyOf({ shop: { context } }: Service): Promise<string> {
  const request = { name: 'client', ownerId: 1, scopes, hubs: '*', expiresAt: null } as const
  return (await issueApiKey(context.db.kysely, context.runtime, request)).key
}

/** Random numbers from a seed. */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

onEachDatabase('the client', (open) => {
  test('with a fifth of all answers lost, no purchase is doubled or lost', async () => {
    const service = await openService(open)
    const { shop } = service
    const q = shop.context.db.kysely
    const purchases = isLongRun ? 200 : 60
    await q
      .updateTable('products')
      .set({ quantity: 2 * purchases })
      .where('id', '=', 1)
      .execute()
    await q
      .updateTable('facings')
      .set({ quantity: 2 * purchases })
      .where('product_id', '=', 1)
      .execute()
    const bins = Array.from({ length: purchases }, (_, index) => ({
      ...healthy.bins[0]!,
      bin_number: index + 1,
    }))
    await reportBins(shop.context.db, 1, bins, shop.clock.now())
    const random = chance(20)
    let dropped = 0
    const real = within(service)
    const lossy: Fetch = async (url, init) => {
      const lot = random()
      if (lot < 0.05) throw new TypeError('it never arrived')
      const answer = await real(url, init)
      if (lot >= 0.2) return answer
      dropped += 1
      if (lot < 0.1) throw new TypeError('the answer was lost')
      // The answer breaks off in the middle.
      const text = await answer.text()
      let half = text.slice(0, text.length / 2)
      const body = new ReadableStream({
        pull(controller) {
          if (half === '') controller.error(new TypeError('terminated'))
          else controller.enqueue(new TextEncoder().encode(half))
          half = ''
        },
      })
      return new Response(body, answer)
    }

    const buy = async (number: number): Promise<number> => {
      const customer = clientOf(
        service,
        {
          token: () => service.tokenOf(`customer-${number}`),
          retry: { tries: 12 },
          system: { sleep: () => Promise.resolve(), random },
        },
        lossy,
      )
      const { user_id } = unwrap(await customer.call('POST /users/user/bootstrap', { body: {} }))
      const query = { hub_id: 1 }
      const cart = unwrap(await customer.call('POST /users/{user_id}/orders', { params: { user_id }, query }))
      const params = { user_id, order_id: cart.order_id }
      const item = { params, query, body: { product_id: 1, quantity: 1 } }
      unwrap(await customer.call('PUT /users/{user_id}/orders/{order_id}/order_item', item))
      const body = { order_id: cart.order_id, payment_method_id: 'pm_card_visa' }
      const paid = unwrap(await customer.call('POST /users/payments/pay', { body }))
      expect(paid.payment_status).toBe('completed')
      return paid.order_id
    }
    const bought: number[] = []
    for (let number = 0; number < purchases; number += 1) bought.push(await buy(number))

    expect(dropped).toBeGreaterThan(purchases / 2)
    expect(new Set(bought).size).toBe(purchases)
    const orders = await q.selectFrom('orders').select(['id', 'processing_status']).execute()
    expect(orders.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(bought.toSorted((a, b) => a - b))
    expect(new Set(orders.map(({ processing_status }) => processing_status))).toEqual(new Set([20]))
    const payments = await q.selectFrom('payments').select(['order_id', 'status']).execute()
    expect(payments.filter(({ status }) => status === 'completed')).toHaveLength(purchases)
    expect(payments).toHaveLength(purchases)
    expect((await shop.product(1)).reserved).toBe(purchases)
  }, 120_000)

  test('the example till takes its own payment, and an unpaid order sells nothing', async () => {
    const service = await openService(open)
    const owner = clientOf(service, { apiKey: await keyOf(service) })
    const guest = (name: string) => clientOf(service, { token: () => service.tokenOf(`guest-${name}`) })
    const taken: number[] = []
    const till = {
      hubId: 1,
      takeMoney: (cents: number) => {
        taken.push(cents)
        return Promise.resolve(taken.length > 1)
      },
    }
    expect(await sellAtTill(guest('a'), owner, till, { 1: 2 })).toEqual({ refused: 'not paid' })
    expect(await sellAtTill(guest('b'), owner, till, { 1: 99 })).toEqual({ refused: 'insufficient_stock' })
    const sale = await sellAtTill(guest('c'), owner, till, { 1: 2 })
    expect(sale).toEqual({ orderId: expect.any(Number) as number, bin: expect.any(Number) as number })
    const { orderId } = sale as { orderId: number }
    const [payment, ...others] = await service.shop.payments(orderId)
    expect([payment!.status, payment!.amount, others]).toEqual(['completed', taken.at(-1), []])
    expect((await service.shop.order(orderId)).processing_status).toBe(20)
    expect((await service.shop.product(1)).reserved).toBe(2)
  })

  test('the example restocker receives the refill list, and reports the filled units', async () => {
    const service = await openService(open)
    const { kysely: q } = service.shop.context.db
    const shelf = { hub_id: 1, cabinet: 1, shelf: 1, total_rows: 2, depth: 10 }
    await q.insertInto('hub_shelves').values(shelf).execute()
    await service.shop.paidOrder({ 1: 2, 2: 1 })
    const owner = clientOf(service, { apiKey: await keyOf(service) })
    const missing = await whatToBring(owner, 1)
    expect(missing.map(({ product }) => product)).toEqual(['Product 1', 'Product 2'])
    const place = { hub_id: 1, cabinet: 1, shelf: 1, row: 1 }
    expect(await filled(owner, { ...place, quantity: 6 })).toMatch(/^6 of \d+$/)
    expect(await filled(owner, { ...place, quantity: 10_000 })).toMatch(/^invalid_quantity: /)
    expect(await sold(owner, 1, 10)).toEqual(
      new Map([
        ['Product 1', 2],
        ['Product 2', 1],
      ]),
    )
  })

  test('the example page follows an order to its end', async () => {
    const service = await openService(open)
    const { shop, cloud } = service
    cloud.start()
    const { user_id: userId } = (await service.customer('ada', 'POST', '/users/user/bootstrap')).json as {
      user_id: number
    }
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    const customer = clientOf(service, {
      token: () => service.tokenOf('ada'),
      system: { sleep: (ms, signal) => surroundings.sleep(ms > 10_000 ? ms : 1, signal) },
    })
    const body = { order_id: orderId, payment_method_id: 'pm_card_visa' }
    unwrap(await customer.call('POST /users/payments/pay', { body }))
    const shown: string[] = []
    const following = followOrder(customer, { userId, orderId }, (sentence) => void shown.push(sentence))
    const until = async (sentence: string) => {
      while (shown.at(-1) !== sentence) await surroundings.sleep(5)
    }
    await until('Your order is waiting for the hub.')
    const [item] = await shop.items(orderId)
    await shop.report({ kind: 'order.preparing', order_id: orderId, bins: [1] })
    await until('Your order is being prepared.')
    await shop.report(drop(item!, 1, 4))
    await shop.report({
      kind: 'order.ready',
      order_id: orderId,
      bins: [1],
      lines: [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [1] }],
    })
    await until('Your order is ready. Bin 1.')
    await shop.report({ kind: 'order.completed', order_id: orderId })
    await following
    expect(shown.at(-1)).toBe('Enjoy!')
    await cloud.stop()
  })
})
