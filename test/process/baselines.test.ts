import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { writeHub, writeOwner } from '../bench/books.ts'
import { writeCarts, writePresence } from '../bench/carts.ts'
import { answer, dismiss, launch } from '../bench/children.ts'
import { service } from '../support/services.ts'
import { createPostgresDatabase } from './chaos/postgres.ts'

const runtime = systemRuntime()

/** Pays the only cart of the database at `url` at a baseline of the benchmarks. */
async function payAt(url: string, baseline: string, argument: string): Promise<void> {
  const now = runtime.clock.now()
  const db = openDatabase({ url })
  onTestFinished(() => db.close())
  await writeOwner(db)
  await writeHub(db, 1, { products: 2, firstProduct: 1 })
  await writePresence(db, 1, now)
  const hub = { id: 1, firstProduct: 1, products: 2 }
  const [cart] = await writeCarts(db, { count: 1, hubs: [hub], now })
  const bare = launch(baseline, [argument])
  onTestFinished(() => dismiss(bare))
  const { port } = (await answer(bare)) as { port: number }
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ order_id: cart!.order })
  expect((await fetch(`http://127.0.0.1:${port}/pay`, { method: 'POST', headers, body })).status).toBe(200)

  const order = await db.kysely.selectFrom('orders').select('processing_status').executeTakeFirstOrThrow()
  expect(order.processing_status).toBe(OrderStatus.QUEUED)
  for (const table of ['payments', 'money_operations', 'sandbox_intents', 'hub_outbox_entries'] as const)
    expect(await db.kysely.selectFrom(table).selectAll().execute()).toHaveLength(1)
}

test('the bare payment of the benchmarks pays a cart in the tables of the service', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'larder-baseline-')), 'cloud.sqlite')
  await payAt(`sqlite:${file}`, 'bare-pay', file)
})

service('postgres')(
  'the bare payment of the benchmarks on PostgreSQL pays a cart in the tables of the service',
  async () => {
    const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
    onTestFinished(() => database.remove())
    await payAt(database.url, 'bare-pay-postgres', database.url)
  },
)

test('the bare reads of the benchmarks start on the tables of the service', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'larder-baseline-')), 'cloud.sqlite')
  const db = openDatabase({ url: `sqlite:${file}` })
  onTestFinished(() => db.close())
  await db.migrate()
  const bare = launch('bare-reads', [file, 'http://127.0.0.1'])
  onTestFinished(() => dismiss(bare))
  expect(await answer(bare)).toEqual({ port: expect.any(Number) as number })
})
