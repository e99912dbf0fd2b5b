import { expect, onTestFinished, test } from 'vitest'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { applyProcessorEvent } from '../../../../cloud/commerce/payments/webhook.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import { Sqlite } from '../../../../cloud/platform/store/sqlite-driver.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { createPostgresDatabase } from '../../../process/chaos/postgres.ts'
import { service } from '../../../support/services.ts'
import { statementTap } from '../../../support/statement-tap.ts'
import { droppedLines, openShop, type Shop } from '../../../world/shop.ts'

/** A paid cart with one unit of `lines` products, in a shop that counts statements. */
async function cartOf(lines: number) {
  let statements = 0
  const sqlite = new Sqlite(':memory:', { verbose: () => void (statements += 1) })
  const db = openDatabase({ url: 'sqlite::memory:', sqlite })
  await db.migrate()
  const shop = await openShop(db, {
    bins: 9,
    products: Array.from({ length: lines }, () => ({ price: 200, quantity: 9 })),
  })
  const quantities = Object.fromEntries(Array.from({ length: lines }, (_, index) => [index + 1, 1]))
  // The names of sold products are stored from the second time on.
  await shop.paidOrder(quantities)
  const userId = await shop.customer()
  const cart = await shop.cart(userId, quantities)
  const payment = () => pay(shop.services, { userId, orderId: cart.id, method: 'pm_card_visa' })
  const count = async (work: () => Promise<unknown>): Promise<number> => {
    statements = 0
    await work()
    return statements
  }
  return {
    shop,
    orderId: cart.id,
    payment,
    count,
  }
}

const paidFor = async (lines: number): Promise<number> => {
  const { payment, count } = await cartOf(lines)
  return count(payment)
}

/** The hub has found nothing on the shelf: each line is refunded. */
const failedOf = async (lines: number): Promise<number> => {
  const { shop, orderId, payment, count } = await cartOf(lines)
  await payment()
  return count(() => reportNothing(shop, orderId))
}

async function reportNothing(shop: Shop, orderId: number): Promise<void> {
  const lines = droppedLines(await shop.items(orderId), { units: 0 })
  await shop.report({ kind: 'order.failed', order_id: orderId, reason: 'stock', bins: [1], lines })
}

test('a payment takes at most 45 statements on SQLite, with the begin and the commit of its three transactions', async () => {
  expect(await paidFor(2)).toBeLessThanOrEqual(45)
})

service('postgres')(
  'a payment takes at most 25 statements in 13 round trips on PostgreSQL, and as many for thirty lines as for two',
  async () => {
    const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, systemRuntime())
    const tap = await statementTap(database.url)
    const db = openDatabase({ url: tap.url })
    onTestFinished(async () => {
      await db.close()
      await tap.close()
      await database.remove()
    })
    await db.migrate()
    const products = Array.from({ length: 30 }, () => ({ price: 200, quantity: 9 }))
    const shop = await openShop(db, { bins: 9, products })
    const paidFor = async (lines: number) => {
      const quantities = Object.fromEntries(products.slice(0, lines).map((_, index) => [index + 1, 1]))
      // The names of sold products are stored from the second time on.
      await shop.paidOrder(quantities)
      const userId = await shop.customer()
      const { id: orderId } = await shop.cart(userId, quantities)
      tap.take()
      await pay(shop.services, { userId, orderId, method: 'pm_card_visa' })
      // A new connection begins with its settings.
      const statements = tap.take().filter(({ text }) => !text.startsWith('set '))
      return { statements: statements.length, roundTrips: statements.filter(({ begins }) => begins).length }
    }
    const [few, many] = [await paidFor(2), await paidFor(30)]
    expect(few.statements).toBeLessThanOrEqual(25)
    expect(few.roundTrips).toBeLessThanOrEqual(13)
    expect(many).toEqual(few)
  },
)

test('an event that repeats the answer to a payment takes one statement', async () => {
  const { shop, orderId, payment, count } = await cartOf(2)
  await payment()
  const [paid] = await shop.payments(orderId)
  const succeeded = (id: string) =>
    applyProcessorEvent(shop.context, {
      id,
      type: 'payment_intent.succeeded',
      data: { object: { id: paid!.processor_ref! } },
    })
  expect(await count(() => succeeded('evt_1'))).toBe(1)
  expect((await shop.payments(orderId))[0]).toEqual(paid)
})

test('a payment of thirty lines takes as many statements as one of a single line', async () => {
  expect(await paidFor(30)).toBe(await paidFor(1))
})

test('an order of thirty lines without a drop is refunded with as many statements as one of a single line', async () => {
  expect(await failedOf(30)).toBe(await failedOf(1))
})
