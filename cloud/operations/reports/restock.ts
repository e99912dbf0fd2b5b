import { sql } from 'kysely'
import { restockColumns, type RestockRow } from '../../../protocol/contract/owner-reports.ts'
import { shownUnits, isBlocked } from '../../commerce/catalogue/units.ts'
import { incompleteOf } from '../../commerce/analytics/totals.ts'
import { ApiError } from '../../platform/api-error.ts'
import { addDays } from '../../platform/calendar/days.ts'
import { localDay } from '../../platform/calendar/zone.ts'
import type { CloudContext } from '../../platform/context.ts'
import { isPlaceOfHub, reachableHubs, type HubWithContact } from '../../platform/credentials/hub-access.ts'
import { reply, type Handlers } from '../../platform/http/handler.ts'
import { answerList, pageOf, type List } from '../../platform/http/lists.ts'
import type { Queries } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/recordset.ts'

/** The rows to refill: those with a product that are not full or are blocked, by hub and place. */
export const restockHandlers = ({ db, runtime }: CloudContext): Handlers<'owner.restock.list'> => ({
  async 'owner.restock.list'(request) {
    const { query, credential } = request
    const all = await reachableHubs(db.kysely, credential)
    const hubs = all.filter(
      ({ id, retired_at }) => retired_at === null && (query.hub_id === undefined || id === query.hub_id),
    )
    const wanted = { hubs, days: query.days, now: runtime.clock.now() }
    const { cursor } = query
    if (cursor !== undefined) {
      const isPlace = PLACE.test(cursor) && (await isPlaceOfHub(db.kysely, credential, parseInt(cursor, 10)))
      if (!isPlace) throw new ApiError('invalid_cursor')
    }
    const rows = await answerList(request, restockColumns, (page) =>
      readRestock(db.kysely, { ...wanted, ...page }),
    )
    const headers = await incompleteOf(
      db.kysely,
      hubs.map(({ id }) => id),
    )
    return reply(rows, { headers })
  },
})

const PLACE = /^\d{1,10}(\.\d{1,9}){3}$/

interface Wanted {
  hubs: readonly HubWithContact[]
  /** Full days of the average. */
  days: number
  now: number
  /** `hub.cabinet.shelf.row` */
  cursor?: string | undefined
  limit: number
}

const placeOf = ({ hub_id, cabinet, shelf, row }: Pick<RestockRow, 'hub_id' | 'cabinet' | 'shelf' | 'row'>) =>
  [hub_id, cabinet, shelf, row].join('.')

export async function readRestock(q: Queries, wanted: Wanted): Promise<List<RestockRow>> {
  const { hubs, cursor, limit } = wanted
  let rows = q
    .selectFrom('facings')
    .innerJoin('products as p', 'p.id', 'facings.product_id')
    .innerJoin('hub_shelves as s', (join) =>
      join
        .onRef('s.hub_id', '=', 'facings.hub_id')
        .onRef('s.cabinet', '=', 'facings.cabinet')
        .onRef('s.shelf', '=', 'facings.shelf'),
    )
    .select(['facings.hub_id', 'facings.cabinet', 'facings.shelf', 'facings.row', 'facings.product_id'])
    .select(['p.upc', 'p.name', 'p.quantity as stock', 's.depth as capacity'])
    .select([
      shownUnits.as('quantity'),
      sql<number>`case when ${isBlocked('facings')} then 1 else 0 end`.as('blocked'),
    ])
    .where(
      'facings.hub_id',
      'in',
      numbersIn(
        q,
        hubs.map(({ id }) => id),
      ),
    )
    .where(sql<boolean>`(${shownUnits} < s.depth or ${isBlocked('facings')})`)
    .orderBy('facings.hub_id')
    .orderBy('facings.cabinet')
    .orderBy('facings.shelf')
    .orderBy('facings.row')
    .limit(limit + 1)
  if (cursor !== undefined) {
    const [hub, ...place] = cursor.split('.').map(Number)
    rows = rows.where(
      sql<boolean>`(facings.hub_id, facings.cabinet, facings.shelf, facings."row") > (${hub}, ${sql.join(place)})`,
    )
  }
  const found = await rows.execute()
  const sold = await readSold(q, wanted, new Set(found.map(({ hub_id }) => hub_id)))
  const data = found.map(({ stock, blocked, quantity, ...row }): RestockRow => {
    const hub = hubs.find(({ id }) => id === row.hub_id)!
    const units = Math.max(0, quantity)
    // In hundredths, because the division must be exact.
    const rate = Math.round(((sold.get(`${row.hub_id} ${row.product_id}`) ?? 0) * 100) / wanted.days)
    const today = localDay(hub.timezone, wanted.now)
    return {
      hub_id: row.hub_id,
      hub_name: hub.name,
      cabinet: row.cabinet,
      shelf: row.shelf,
      row: row.row,
      product_id: row.product_id,
      upc: row.upc,
      name: row.name,
      capacity: row.capacity,
      quantity: units,
      refill: Math.max(0, row.capacity - units),
      sold_per_day: rate / 100,
      empty_by: stock <= 0 ? today : rate <= 0 ? null : addDays(today, Math.floor((stock * 100) / rate)),
      blocked: blocked === 1,
    }
  })
  return pageOf(data, limit, placeOf)
}

/** Units of each product that hubs have sold in the last full days, by `hub product`. */
async function readSold(
  q: Queries,
  { hubs, days, now }: Wanted,
  ids: ReadonlySet<number>,
): Promise<Map<string, number>> {
  const sold = new Map<string, number>()
  for (const hub of hubs.filter(({ id }) => ids.has(id))) {
    const today = localDay(hub.timezone, now)
    const rows = await q
      .selectFrom('sales_days')
      .select(['product_id', (eb) => eb.fn.sum<number>('units').as('units')])
      .where('hub_id', '=', hub.id)
      .where('owner_id', '=', hub.owner_id)
      .where('part', '=', 'product')
      .where('day', '>=', addDays(today, -days))
      .where('day', '<', today)
      .groupBy('product_id')
      .execute()
    for (const { product_id, units } of rows) sold.set(`${hub.id} ${product_id}`, units)
  }
  return sold
}
