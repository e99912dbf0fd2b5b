import { sql } from 'kysely'
import { formerGuests } from '../../commerce/ledger/move-ledger.ts'
import type { Queries } from '../../platform/store/database.ts'
import { tables } from '../../platform/store/schema.ts'

/** Columns that only the service may read. */
const isSecret = (column: string): boolean => /secret|token|digest|sealed|^mark$|^body$/.test(column)

type Row = Record<string, unknown>

/**
 * Everything that is stored about a customer, by table: the tables with a column `user_id`, those of the customer's orders,
 * and the acts of the customer's identity. Also the rows that stayed with guests who became this user. Throws if there is no
 * such user.
 */
export async function exportUser(
  q: Queries,
  userId: number,
): Promise<{ user_id: number } & Record<string, unknown>> {
  const read = async (condition: ReturnType<typeof sql>): Promise<Row[]> =>
    (await sql<Row>`select * from ${condition}`.execute(q)).rows.map((row) =>
      Object.fromEntries(Object.entries(row).filter(([column]) => !isSecret(column))),
    )
  const user = await q.selectFrom('users').selectAll().where('id', '=', userId).executeTakeFirst()
  if (!user) throw new Error(`no such user: ${userId}`)
  const ids = sql.join([userId, ...(await formerGuests(q, userId))])
  const found: Record<string, Row[]> = {}
  for (const [name, { columns }] of Object.entries(tables)) {
    const [table, has] = [sql.table(name), (column: string) => column in columns]
    if (has('user_id')) found[name] = await read(sql`${table} where user_id in (${ids})`)
    else if (has('order_id'))
      found[name] = await read(
        sql`${table} where order_id in (select id from orders where user_id = ${userId})`,
      )
  }
  const identity = user.identity ?? ''
  const actor = `identity:${identity}`
  found['sessions'] = await read(sql`sessions where identity = ${identity}`)
  found['idempotency_keys'] = await read(sql`idempotency_keys where credential = ${actor}`)
  found['audit_log'] = await read(sql`audit_log where object = ${`user-${userId}`} or actor = ${actor}`)
  return { user_id: userId, user, ...found }
}
