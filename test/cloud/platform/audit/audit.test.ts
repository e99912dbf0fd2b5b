import { RawNode, sql, type KyselyPlugin } from 'kysely'
import { expect, test } from 'vitest'
import { appendAudits, listAudit } from '../../../../cloud/platform/audit/audit.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { seedHub } from '../../../world/seeds.ts'

const DAY_MS = 86_400_000
const RECORDS = 20_000
/** Time between two records. */
const HOUR_MS = 3_600_000

/** Statements are explained in place of their rows; `mostRows` is the largest number of rows that a step of a plan produced. */
function explaining(): { plugin: KyselyPlugin; mostRows: () => number } {
  let most = 0
  return {
    mostRows: () => most,
    plugin: {
      transformQuery: ({ node }) =>
        node.kind === 'RawNode' ? RawNode.create(['explain (analyze, format json) ', ''], [node]) : node,
      transformResult({ result }) {
        for (const [, rows] of JSON.stringify(result.rows).matchAll(/"Actual Rows":(\d+)/g))
          most = Math.max(most, Number(rows))
        return Promise.resolve({ ...result, rows: [] })
      },
    },
  }
}

onEachDatabase('the audit log', (open) => {
  test('the audit log stores any number of simultaneous records in order', async () => {
    const { kysely } = await open()
    const objects = Array.from({ length: 10_000 }, (_, index) => `bin-${index}`)
    await appendAudits(
      kysely,
      virtualRuntime(),
      objects.map((object) => ({
        actor: 'hub',
        action: 'controls.open_bin',
        hubId: null,
        object,
        result: 'unknown',
      })),
    )
    const rows = await kysely.selectFrom('audit_log').select('object').orderBy('id').execute()
    expect(rows.map(({ object }) => object)).toEqual(objects)
  })

  test('a page of the records of a hub and a time reads few rows more than it shows, however many there are', async () => {
    const db = await open()
    if (db.kind === 'sqlite') return
    await seedHub(db, 1)
    await sql`insert into audit_log (at, actor, action, hub_id, object, result, detail)
      select ${HOUR_MS}::bigint * n, 'key:a', 'controls.open_bin', 1, 'order-' || n, 'executed', '{}'
      from generate_series(1, ${RECORDS}::int) as n order by md5(n::text)`.execute(db.kysely)
    await sql`analyze audit_log`.execute(db.kysely)
    const range = { since: 100 * DAY_MS, until: 140 * DAY_MS }
    const limit = 20
    const conditions = [sql<boolean>`coalesce(hub_id = 1 and at > 0, false)`]
    for (const further of [{}, { action: 'controls.open_bin' }, { actor: 'key:a' }]) {
      const { plugin, mostRows } = explaining()
      const q = db.kysely.withPlugin(plugin)
      const filter = { ...range, ...further, hubId: 1, hubs: [1, null], conditions, limit }
      await listAudit(q, filter)
      expect([further, mostRows() > 0 && mostRows() <= 2 * limit]).toEqual([further, true])
    }
  })
})
