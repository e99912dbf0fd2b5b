import * as fc from 'fast-check'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { discountedPrice, discountedPriceSql } from '../../../../cloud/commerce/catalogue/pricing.ts'
import { timestamp } from '../../../../cloud/platform/calendar/days.ts'
import { jsonOf } from '../../../../cloud/platform/store/json.ts'
import { onEachDatabase } from '../../../world/database.ts'

onEachDatabase('JSON that a database writes', (open) => {
  test('the database writes any text, number, boolean, null and instant as JavaScript does', async () => {
    const { kysely: q } = await open()
    const json = jsonOf(q)
    // PostgreSQL stores no NUL.
    const text = fc.string({ unit: 'binary' }).filter((value) => !value.includes('\0'))
    const at = fc.integer({ min: 0, max: Date.parse('2100-01-01') })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(text, fc.integer(), at), { maxLength: 5 }), async (rows) => {
        const values = rows.map(([name, number, instant], index) => ({ index, name, number, instant }))
        const source = sql.join(
          values.map(
            (row) =>
              sql`select cast(${row.index} as bigint) as i, cast(${row.name} as text) as name, cast(${row.number} as bigint) as num, cast(${row.instant} as bigint) as at`,
          ),
          sql` union all `,
        )
        const item = json.object({
          name: sql.ref('r.name'),
          number: sql.ref('r.num'),
          isPositive: json.boolean(sql`r.num > 0`),
          nothing: sql`null`,
          at: json.timestamp(sql.ref('r.at')),
        })
        const from = rows.length > 0 ? source : sql`select 1 as i, '' as name, 1 as num, 1 as at where 1 = 0`
        const body = json.text(json.arrayOf(item, sql`r.i desc`))
        const { rows: answer } = await sql<{
          body: string
        }>`select ${body} as body from (${from}) as r`.execute(q)
        expect(JSON.parse(answer[0]!.body)).toEqual(
          values.toReversed().map(({ name, number, instant }) => ({
            name,
            number,
            isPositive: number > 0,
            nothing: null,
            at: timestamp(instant),
          })),
        )
      }),
      { numRuns: 60 },
    )
  })

  test('the database rounds a markdown as the service does', async () => {
    const { kysely: q } = await open()
    for (const [original, markdown] of [
      [199, 0],
      [199, 50],
      [1, 50],
      [3, 17],
      [99_999_999, 99],
    ] as const) {
      const { rows } = await sql<{ price: number }>`select ${discountedPriceSql} as price
        from (select cast(${original} as bigint) as original_price, cast(${markdown} as bigint) as markdown_percent) as products`.execute(
        q,
      )
      expect(rows[0]!.price).toBe(discountedPrice(original, markdown))
    }
  })
})
