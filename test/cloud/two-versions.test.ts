import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { migrate, numberedMigrations } from '../../cloud/platform/store/migrate.ts'
import { tables } from '../../cloud/platform/store/schema.ts'
import { openCloud } from '../world/cloud.ts'
import { onEachDatabase } from '../world/database.ts'
import { openShop } from '../world/shop.ts'

/**
 * Changes of the next version to any table while the present version still serves
 * (`cloud/platform/store/migrate.ts`).
 */
const statements = () => [
  ...Object.keys(tables).map((table) => `alter table ${table} add column of_the_next_version text`),
  'create table of_the_next_version (id integer primary key)',
]
const next = { name: '9999-next', statements }

onEachDatabase('two versions side by side', (open) => {
  test('a process continues while the next version adds columns to every table', async () => {
    const db = await open()
    const shop = await openShop(db)
    const before = await shop.paidOrder({ 1: 1 })
    await migrate(db.kysely, db.kind, { numbered: [...numberedMigrations, next] })
    await sql`insert into of_the_next_version (id) values (1)`.execute(db.kysely)
    const after = await shop.paidOrder({ 1: 1, 2: 2 })
    for (const { id } of [before, after]) {
      const lines = (await shop.items(id)).map(({ id: line_id, qty }) => ({
        line_id,
        dropped: qty,
        doubtful: 0,
        bins: [1],
      }))
      await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
      await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
      await shop.report({ kind: 'order.completed', order_id: id })
      expect((await shop.order(id)).processing_status).toBe(OrderStatus.COMPLETED)
    }
  })
})

onEachDatabase('two versions side by side: credentials', (open) => {
  test('credentials are checked while the next version adds columns to every table', async () => {
    const db = await open()
    const { call, key, runtime, context } = await openCloud({ db })
    const mine = await key(['hubs:read'])
    const status = async () =>
      (await call('GET', '/api/v1/owners/hubs/get_hub_health/?hub_id=1', { key: mine })).status
    expect(await status()).toBe(200)
    await migrate(db.kysely, db.kind, { numbered: [...numberedMigrations, next] })
    runtime.clock.advance(context.settings.grantsKeptMs)
    expect(await status()).toBe(200)
  })
})
