import { expect, test } from 'vitest'
import { auditHandlers } from '../../../../cloud/operations/reports/audit.ts'
import { restockHandlers } from '../../../../cloud/operations/reports/restock.ts'
import { paymentReportHandlers } from '../../../../cloud/commerce/payments/payment-report.ts'
import { salesReportHandlers } from '../../../../cloud/commerce/analytics/sales-report.ts'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { openCloud } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

const reports = [
  'payments',
  'payments?from=2026-01-01&order_id=1',
  'sales',
  'audit?from=2026-01-01',
  'restock',
]

onEachDatabase('reports of many hubs', (open) => {
  async function openReports(from: OpenDatabase) {
    const app = await openCloud({
      db: await from(),
      handlersOf: (context) => ({
        ...paymentReportHandlers(context),
        ...salesReportHandlers(context),
        ...auditHandlers(context),
        ...restockHandlers(context),
      }),
    })
    const shop = await openShop(app.context.db)
    await shop.paidOrder({ 1: 1 })
    const q = app.context.db.kysely
    const hub = await q.selectFrom('hubs').selectAll().where('id', '=', 1).executeTakeFirstOrThrow()
    const addHubs = async (owners: readonly number[]) => {
      for (let first = 0; first < owners.length; first += 500)
        await q
          .insertInto('hubs')
          .values(
            owners.slice(first, first + 500).map((owner_id, index) => {
              const id = 1000 + first + index
              return { ...hub, id, owner_id, name: `Hub ${id}` }
            }),
          )
          .execute()
    }
    return { ...app, q, addHubs }
  }

  test('each report works for an owner with 9000 hubs', async () => {
    const { key, call, addHubs } = await openReports(open)
    await addHubs(Array.from({ length: 9000 }, () => 1))
    const credential = { key: await key(['orders:read', 'analytics:read', 'hubs:read', 'inventory:read']) }
    for (const path of reports)
      expect([path, (await call('GET', `/api/v1/owners/${path}`, credential)).status]).toEqual([path, 200])
    const payments = await call('GET', '/api/v1/owners/payments', credential)
    expect(payments.json).toMatchObject({ data: [{ hub_id: 1, type: 'payment' }] })
  })

  test('each report works for a person with hubs of 1100 owners', async () => {
    const { q, call, addHubs, issuer, context } = await openReports(open)
    const owners = Array.from({ length: 1100 }, (_, index) => 100 + index)
    const rows = owners.map((id) => ({ id, name: `Owner ${id}` }))
    for (let first = 0; first < rows.length; first += 500)
      await q
        .insertInto('owners')
        .values(rows.slice(first, first + 500))
        .execute()
    await addHubs(owners)
    await grantRole(q, context.runtime, { identity: 'olga', role: 'owner', hubs: '*' })
    const credential = { token: await issuer.token({ sub: 'olga' }) }
    for (const path of reports)
      expect([path, (await call('GET', `/api/v1/owners/${path}`, credential)).status]).toEqual([path, 200])
    const payments = await call('GET', '/api/v1/owners/payments', credential)
    expect(payments.json).toMatchObject({ data: [{ hub_id: 1, type: 'payment' }] })
  })
})
