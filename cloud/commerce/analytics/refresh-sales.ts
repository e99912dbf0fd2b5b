import { sql, type Selectable } from 'kysely'
import { monthOf } from '../../platform/calendar/days.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { statement } from '../../platform/store/statement.ts'
import {
  ALL,
  hourOf,
  lockLines,
  readSaleBooks,
  rowOf,
  salesOf,
  sumOf,
  WHOLE_HUB,
  type Sale,
  type SalesOfOrders,
} from './sale.ts'

/**
 * Counts an order at the end of the transaction that changes its money, once in the same commit. Call it under the
 * order's lock.
 */
export function countSale(tx: Tx, orderId: number): void {
  tx.beforeCommit(`sale ${orderId}`, () => refreshSales(tx, [orderId]))
}

/**
 * Updates the summaries for some orders of one hub, by the difference to their last counted values: a second call
 * changes nothing. The cost does not depend on the number of other orders. Call it under the orders' locks.
 */
export async function refreshSales(tx: Tx, orderIds: readonly number[]): Promise<void> {
  const { now, held } = await lockAndRead(tx, orderIds)
  const changed = orderIds.filter((id) => !isSame(held.get(id), now.get(id)))
  if (changed.length === 0) return
  const pick = (sales: ReadonlyMap<number, Sale>): Sale[] => changed.flatMap((id) => sales.get(id) ?? [])
  const [before, after] = [pick(held), pick(now)]
  const { totals, hours, customers } = changesBetween(before, after)
  const [won] = await Promise.all([
    addCustomers(tx, customers),
    addHours(tx, hours),
    writeSales(tx, after),
    dropSales(
      tx,
      changed.filter((id) => !now.has(id)),
    ),
  ])
  await addTotals(tx, totals, won)
}

function isSame(held: Sale | undefined, now: Sale | undefined): boolean {
  if (!held || !now) return held === now
  return JSON.stringify(rowOf(held)) === JSON.stringify(rowOf(now))
}

/**
 * Locks the summaries of a hub, because all its sales change the same rows. Their values are read after the lock,
 * because `rebuild.ts` may have cleared them.
 */
async function lockAndRead(tx: Tx, orderIds: readonly number[]): Promise<SalesOfOrders> {
  // In sequence: the second query reads under the lock of the first.
  const read = () => Promise.all([lockLines(tx.q, { orderIds }), readSaleBooks(tx.q, orderIds)])
  const [lines, books] = await read()
  if (lines.length > 0) return salesOf(lines, books)
  const hub = tx.q.selectFrom('orders').select('hub_id').where('id', 'in', orderIds)
  // The hub's first sale: its summaries begin before a rebuild has read its past.
  await tx.q
    .insertInto('sales_calendars')
    .columns(['hub_id', 'timezone', 'is_whole', 'run'])
    .expression((eb) =>
      eb
        .selectFrom('hubs')
        .select(['id', 'timezone', eb.lit(0).as('is_whole'), eb.lit(0).as('run')])
        .where('id', 'in', hub),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return salesOf(...(await read()))
}

async function writeSales(tx: Tx, sales: readonly Sale[]): Promise<void> {
  if (sales.length === 0) return
  await upsertSales(tx.q, { rows: sales.map(rowOf) })
}

/** Parameter of a statement with many rows. */
interface Rows<T> {
  rows: readonly T[]
}

const saleColumns = {
  ...({
    order_id: 'int',
    hub_id: 'int',
    owner_id: 'int',
    user_id: 'int',
    sold_at: 'int',
    day: 'text',
  } as const),
  ...({ units: 'int', revenue: 'int', lines: 'text' } as const),
}
const upsertSales = statement(
  (_, { rows }: Rows<Selectable<Tables['sales']>>, { kind }) => sql`
    insert into sales (order_id, hub_id, owner_id, user_id, sold_at, day, units, revenue, lines)
    select order_id, hub_id, owner_id, user_id, sold_at, day, units, revenue, lines
    from ${recordset(kind, saleColumns, rows)} where true
    on conflict (order_id) do update set
      user_id = excluded.user_id, sold_at = excluded.sold_at, day = excluded.day,
      units = excluded.units, revenue = excluded.revenue, lines = excluded.lines`,
)

async function dropSales(tx: Tx, orderIds: readonly number[]): Promise<void> {
  if (orderIds.length > 0) await tx.q.deleteFrom('sales').where('order_id', 'in', orderIds).execute()
}

/** Records the customers of periods, and returns how many customers each period of a hub gained or lost. */
async function addCustomers(tx: Tx, changes: readonly CustomerChange[]): Promise<Map<string, number>> {
  const won = new Map<string, number>()
  if (changes.length === 0) return won
  const rows = await upsertCustomers(tx.q, { rows: changes })
  const counts = new Map(rows.map((row) => [customerKey(row), row.orders]))
  for (const change of changes) {
    const after = counts.get(customerKey(change))!
    const before = after - change.orders
    const key = periodKey(change)
    won.set(key, (won.get(key) ?? 0) + Number(after > 0) - Number(before > 0))
  }
  return won
}

const customerColumns = {
  hub_id: 'int',
  owner_id: 'int',
  period: 'text',
  user_id: 'int',
  orders: 'int',
} as const
const upsertCustomers = statement(
  (_, { rows }: Rows<CustomerChange>, { kind }) => sql<CustomerChange>`
    insert into sales_customers (hub_id, owner_id, period, user_id, orders)
    select hub_id, owner_id, period, user_id, orders from ${recordset(kind, customerColumns, rows)} where true
    on conflict (hub_id, owner_id, period, user_id) do update set orders = sales_customers.orders + excluded.orders
    returning hub_id, owner_id, period, user_id, orders`,
)

async function addTotals(
  tx: Tx,
  changes: readonly TotalsChange[],
  customersWon: ReadonlyMap<string, number>,
): Promise<void> {
  const rows = changes
    .map((change) => ({
      ...change,
      customers: change.product_id === WHOLE_HUB ? (customersWon.get(periodKey(change)) ?? 0) : 0,
    }))
    .filter(
      ({ orders, units, revenue, cost, customers }) =>
        orders !== 0 || units !== 0 || revenue !== 0 || cost !== 0 || customers !== 0,
    )
  if (rows.length === 0) return
  await upsertTotals(tx.q, { rows })
}

const totalsColumns = {
  ...({ hub_id: 'int', owner_id: 'int', period: 'text', product_id: 'int' } as const),
  ...({ orders: 'int', units: 'int', revenue: 'int', cost: 'int', customers: 'int' } as const),
}
const upsertTotals = statement(
  (_, { rows }: Rows<Selectable<Tables['sales_totals']>>, { kind }) => sql`
    insert into sales_totals (hub_id, owner_id, period, product_id, orders, units, revenue, cost, customers)
    select hub_id, owner_id, period, product_id, orders, units, revenue, cost, customers
    from ${recordset(kind, totalsColumns, rows)} where true
    on conflict (hub_id, owner_id, period, product_id) do update set
      orders = sales_totals.orders + excluded.orders,
      units = sales_totals.units + excluded.units,
      revenue = sales_totals.revenue + excluded.revenue,
      cost = sales_totals.cost + excluded.cost,
      customers = sales_totals.customers + excluded.customers`,
)

async function addHours(tx: Tx, changes: readonly HoursChange[]): Promise<void> {
  if (changes.length > 0) await upsertHours(tx.q, { rows: changes })
}

const hoursColumns = {
  ...({ hub_id: 'int', owner_id: 'int', hour: 'int' } as const),
  ...({ orders: 'int', units: 'int', revenue: 'int' } as const),
}
const upsertHours = statement(
  (_, { rows }: Rows<HoursChange>, { kind }) => sql`
    insert into sales_hours (hub_id, owner_id, hour, orders, units, revenue)
    select hub_id, owner_id, hour, orders, units, revenue from ${recordset(kind, hoursColumns, rows)} where true
    on conflict (hub_id, owner_id, hour) do update set
      orders = sales_hours.orders + excluded.orders,
      units = sales_hours.units + excluded.units,
      revenue = sales_hours.revenue + excluded.revenue`,
)

/** A hub under an owner. */
interface Book {
  hub_id: number
  owner_id: number
}
const bookKey = ({ hub_id, owner_id }: Book): string => `${hub_id} ${owner_id}`
const periodKey = (row: Book & { period: string }): string => `${bookKey(row)} ${row.period}`
const customerKey = (row: CustomerChange): string => `${periodKey(row)} ${row.user_id}`

type TotalsChange = Omit<Selectable<Tables['sales_totals']>, 'customers'>
type HoursChange = Selectable<Tables['sales_hours']>
type CustomerChange = Selectable<Tables['sales_customers']>

/** The changes of summaries when some sales replace others; unchanged rows may be included. */
interface SalesChanges {
  totals: TotalsChange[]
  hours: HoursChange[]
  customers: CustomerChange[]
}

function changesBetween(before: readonly Sale[], after: readonly Sale[]): SalesChanges {
  const totals = new Map<string, TotalsChange>()
  const hours = new Map<string, HoursChange>()
  const customers = new Map<string, CustomerChange>()
  for (const sale of before) addSale(-1, sale)
  for (const sale of after) addSale(1, sale)
  return {
    totals: sorted(totals),
    hours: sorted(hours).filter(({ orders, units, revenue }) => orders !== 0 || units !== 0 || revenue !== 0),
    customers: sorted(customers).filter(({ orders }) => orders !== 0),
  }

  function addSale(sign: 1 | -1, { hubId, ownerId, userId, at, day, lines }: Sale): void {
    const book: Book = { hub_id: hubId, owner_id: ownerId }
    const month = monthOf(day)
    const { units, revenue, cost } = sumOf(lines)
    for (const period of [ALL, month, day])
      countTotals(sign, { ...book, period, product_id: WHOLE_HUB }, [units, revenue, cost])
    countHour(sign, { ...book, hour: hourOf(at), orders: 1, units, revenue })
    for (const [productId, ...figures] of lines)
      for (const period of [ALL, month])
        countTotals(sign, { ...book, period, product_id: productId }, figures)
    for (const period of [ALL, month]) countCustomer(sign, { ...book, period, user_id: userId })
  }

  function countTotals(
    sign: 1 | -1,
    of: Pick<TotalsChange, keyof Book | 'period' | 'product_id'>,
    [units, revenue, cost]: Figures,
  ): void {
    const key = `${periodKey(of)} ${of.product_id}`
    const row = totals.get(key) ?? { ...of, orders: 0, units: 0, revenue: 0, cost: 0 }
    row.orders += sign
    row.units += sign * units
    row.revenue += sign * revenue
    row.cost += sign * cost
    totals.set(key, row)
  }

  function countHour(sign: 1 | -1, { hub_id, owner_id, hour, ...figures }: HoursChange): void {
    const of = { hub_id, owner_id, hour }
    const key = `${bookKey(of)} ${hour}`
    const row = hours.get(key) ?? { ...of, orders: 0, units: 0, revenue: 0 }
    row.orders += sign * figures.orders
    row.units += sign * figures.units
    row.revenue += sign * figures.revenue
    hours.set(key, row)
  }

  function countCustomer(sign: 1 | -1, of: Omit<CustomerChange, 'orders'>): void {
    const key = `${periodKey(of)} ${of.user_id}`
    const row = customers.get(key) ?? { ...of, orders: 0 }
    row.orders += sign
    customers.set(key, row)
  }
}

type Figures = readonly [units: number, revenue: number, cost: number]

/** Rows in one order, so that transactions lock them in the same order. */
const sorted = <T>(rows: ReadonlyMap<string, T>): T[] =>
  [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
