import { sql, type RawBuilder, type Selectable } from 'kysely'
import { monthOf } from '../../platform/calendar/days.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { statement } from '../../platform/store/statement.ts'
import {
  ALL,
  figuresOf,
  lockLines,
  readSaleBooks,
  rowOf,
  saleFigures,
  salesOf,
  sumOf,
  utcHour,
  WHOLE_HUB,
  type Sale,
  type SaleFigures,
  type SalesOfOrders,
} from './sale.ts'

/**
 * Counts an order at the end of the transaction that changes its money, once in the same commit. Call it under the
 * order's lock.
 */
export function countSale(tx: Tx, orderId: number): void {
  tx.beforeCommit(`sale ${orderId}`, async () => {
    const sales = await lockAndRead(tx, [orderId])
    return () => writeChanges(tx, [orderId], sales)
  })
}

/**
 * Updates the summaries for some orders of one hub, by the difference to their last counted values: a second call
 * changes nothing. The cost does not depend on the number of other orders. Call it under the orders' locks.
 */
export async function refreshSales(tx: Tx, orderIds: readonly number[]): Promise<void> {
  await writeChanges(tx, orderIds, await lockAndRead(tx, orderIds))
}

async function writeChanges(
  tx: Tx,
  orderIds: readonly number[],
  { now, held }: SalesOfOrders,
): Promise<void> {
  const changed = orderIds.filter((id) => !isSame(held.get(id), now.get(id)))
  if (changed.length === 0) return
  const pick = (sales: ReadonlyMap<number, Sale>): Sale[] => changed.flatMap((id) => sales.get(id) ?? [])
  const [before, after] = [pick(held), pick(now)]
  const { totals, days, customers } = changesBetween(before, after)
  // In this order: the last statement reads what the first one has written.
  await Promise.all([
    addCustomers(tx, customers),
    addDays(tx, days),
    writeSales(tx, after),
    dropSales(
      tx,
      changed.filter((id) => !now.has(id)),
    ),
    addTotals(tx, totals, customers),
  ])
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
  ...({ orders: 'int', units: 'int', revenue: 'int', lines: 'text' } as const),
}
const upsertSales = statement(
  (_, { rows }: Rows<Selectable<Tables['sales']>>, { kind }) => sql`
    insert into sales (order_id, hub_id, owner_id, user_id, sold_at, day, orders, units, revenue, lines)
    select order_id, hub_id, owner_id, user_id, sold_at, day, orders, units, revenue, lines
    from ${recordset(kind, saleColumns, rows)} where true
    on conflict (order_id) do update set
      user_id = excluded.user_id, sold_at = excluded.sold_at, day = excluded.day, orders = excluded.orders,
      units = excluded.units, revenue = excluded.revenue, lines = excluded.lines`,
)

async function dropSales(tx: Tx, orderIds: readonly number[]): Promise<void> {
  if (orderIds.length > 0) await tx.q.deleteFrom('sales').where('order_id', 'in', orderIds).execute()
}

/** Records the customers of periods. */
async function addCustomers(tx: Tx, changes: readonly CustomerChange[]): Promise<void> {
  if (changes.length > 0) await upsertCustomers(tx.q, { rows: changes })
}

const customerColumns = {
  hub_id: 'int',
  owner_id: 'int',
  period: 'text',
  user_id: 'int',
  orders: 'int',
} as const
const upsertCustomers = statement(
  (_, { rows }: Rows<CustomerChange>, { kind }) => sql`
    insert into sales_customers (hub_id, owner_id, period, user_id, orders)
    select hub_id, owner_id, period, user_id, orders from ${recordset(kind, customerColumns, rows)} where true
    on conflict (hub_id, owner_id, period, user_id) do update set orders = sales_customers.orders + excluded.orders`,
)

/** Adds the totals, with the numbers of customers that each period has gained or lost by `addCustomers`. */
async function addTotals(
  tx: Tx,
  rows: readonly TotalsChange[],
  customers: readonly CustomerChange[],
): Promise<void> {
  if (rows.length > 0) await upsertTotals(tx.q, { rows, customers })
}

const totalsColumns = {
  ...({ hub_id: 'int', owner_id: 'int', period: 'text', product_id: 'int' } as const),
  ...({ orders: 'int', units: 'int', revenue: 'int', cost: 'int' } as const),
}
const counts = (orders: RawBuilder<unknown>) => sql`case when ${orders} > 0 then 1 else 0 end`
const upsertTotals = statement(
  (_, { rows, customers }: Rows<TotalsChange> & { customers: readonly CustomerChange[] }, { kind }) => sql`
    insert into sales_totals (hub_id, owner_id, period, product_id, orders, units, revenue, cost, customers)
    select hub_id, owner_id, period, product_id, orders, units, revenue, cost, customers from (
      select hub_id, owner_id, period, product_id, orders, units, revenue, cost,
        case when product_id = ${sql.lit(WHOLE_HUB)} then coalesce(won.customers, 0) else 0 end as customers
      from ${recordset(kind, totalsColumns, rows)}
      left join (
        select s.hub_id as hub, s.owner_id as owner, s.period as within,
          sum(${counts(sql`s.orders`)} - ${counts(sql`s.orders - r.orders`)}) as customers
        from ${recordset(kind, customerColumns, customers)}
        join sales_customers as s on s.hub_id = r.hub_id and s.owner_id = r.owner_id and s.period = r.period
          and s.user_id = r.user_id
        group by s.hub_id, s.owner_id, s.period
      ) as won on won.hub = hub_id and won.owner = owner_id and won.within = period
    ) as changed
    where orders <> 0 or units <> 0 or revenue <> 0 or cost <> 0 or customers <> 0
    on conflict (hub_id, owner_id, period, product_id) do update set
      orders = sales_totals.orders + excluded.orders,
      units = sales_totals.units + excluded.units,
      revenue = sales_totals.revenue + excluded.revenue,
      cost = sales_totals.cost + excluded.cost,
      customers = sales_totals.customers + excluded.customers`,
)

async function addDays(tx: Tx, changes: readonly DaysChange[]): Promise<void> {
  if (changes.length > 0) await upsertDays(tx.q, { rows: changes })
}

const daysColumns = {
  ...({ hub_id: 'int', owner_id: 'int', part: 'text', day: 'text', key: 'text', name: 'text' } as const),
  ...({ product_id: 'int', orders: 'int', units: 'int', revenue: 'int', cost: 'int' } as const),
  ...({ discount: 'int', tax: 'int', refunded: 'int' } as const),
}
const daysNames = sql.join(Object.keys(daysColumns).map((name) => sql.ref(name)))
const upsertDays = statement(
  (_, { rows }: Rows<DaysChange>, { kind }) => sql`
    insert into sales_days (${daysNames})
    select ${daysNames} from ${recordset(kind, daysColumns, rows)} where true
    on conflict (hub_id, owner_id, part, day, key, name, product_id) do update set
      orders = sales_days.orders + excluded.orders,
      units = sales_days.units + excluded.units,
      revenue = sales_days.revenue + excluded.revenue,
      cost = sales_days.cost + excluded.cost,
      discount = sales_days.discount + excluded.discount,
      tax = sales_days.tax + excluded.tax,
      refunded = sales_days.refunded + excluded.refunded`,
)

/** A hub under an owner. */
interface Book {
  hub_id: number
  owner_id: number
}

type TotalsChange = Omit<Selectable<Tables['sales_totals']>, 'customers'>
type DaysChange = Selectable<Tables['sales_days']>
type CustomerChange = Selectable<Tables['sales_customers']>

/** The changes of summaries when some sales replace others; unchanged rows may be included. */
interface SalesChanges {
  totals: TotalsChange[]
  days: DaysChange[]
  customers: CustomerChange[]
}

function changesBetween(before: readonly Sale[], after: readonly Sale[]): SalesChanges {
  const totals = new Changes<TotalsChange>('orders', 'units', 'revenue', 'cost')
  const days = new Changes<DaysChange>('orders', ...saleFigures)
  const customers = new Changes<CustomerChange>('orders')
  for (const sale of before) addSale(-1, sale)
  for (const sale of after) addSale(1, sale)
  // A total may change only in its customers, who are not known yet.
  return { totals: totals.all(), days: days.rows(), customers: customers.rows() }

  function addSale(sign: 1 | -1, sale: Sale): void {
    const { hubId, ownerId, userId, day, orders, lines } = sale
    const book: Book = { hub_id: hubId, owner_id: ownerId }
    const sum = { orders, ...sumOf(lines) }
    for (const period of [ALL, monthOf(day)]) {
      totals.add(sign, { ...book, period, product_id: WHOLE_HUB }, sum)
      for (const line of lines)
        totals.add(sign, { ...book, period, product_id: line[0] }, { orders, ...figuresOf(line) })
      customers.add(sign, { ...book, period, user_id: userId }, { orders })
    }
    for (const { figures, ...part } of partsOf(sale, sum))
      days.add(sign, { ...book, name: '', product_id: 0, day, ...part }, { orders, ...figures })
  }
}

type SalePart = Pick<DaysChange, 'part' | 'key'> &
  Partial<Pick<DaysChange, 'day' | 'name' | 'product_id'>> & { figures: SaleFigures }

/** The rows of its day that a sale counts in. */
function partsOf({ at, hour, lines, sold }: Sale, figures: SaleFigures): SalePart[] {
  return [
    { part: 'hub', key: '', figures },
    { part: 'hour', key: hour, figures },
    { part: 'utc_hour', ...utcHour(at), figures },
    ...sold.map(({ productId, upc, name }, index): SalePart => {
      const line = { name, product_id: productId, figures: figuresOf(lines[index]!) }
      return { part: 'product', key: upc, ...line }
    }),
    ...[...new Set(sold.map(({ category }) => category))].map((category): SalePart => {
      const own = lines.filter((_, index) => sold[index]!.category === category)
      return { part: 'category', key: category, figures: sumOf(own) }
    }),
  ]
}

/** Sums of changes to the rows of a table, by the other columns of the row. */
class Changes<Row extends object> {
  readonly #figures: readonly (keyof Row & string)[]
  readonly #rows = new Map<string, Row>()

  constructor(...figures: (keyof Row & string)[]) {
    this.#figures = figures
  }

  add(sign: 1 | -1, of: object, values: Partial<Record<keyof Row & string, number>>): void {
    const key = JSON.stringify(Object.values(of))
    const row = (this.#rows.get(key) ?? { ...of }) as Record<string, unknown>
    for (const name of this.#figures) row[name] = ((row[name] as number) ?? 0) + sign * values[name]!
    this.#rows.set(key, row as Row)
  }

  /** All rows in one order, so that transactions lock them in the same order. */
  all(): Row[] {
    return [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  }

  /** The rows that change. */
  rows(): Row[] {
    return this.all().filter((row) => this.#figures.some((name) => row[name] !== 0))
  }
}
