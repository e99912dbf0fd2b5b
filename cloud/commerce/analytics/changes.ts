import { monthOf } from '../../platform/calendar/days.ts'
import type { Sale } from './sale.ts'

/** The period without an end. */
export const ALL = 'all'
/** The hub as a whole, among its products. */
export const WHOLE_HUB = 0

export interface TotalsChange {
  hub_id: number
  period: string
  product_id: number
  orders: number
  units: number
  revenue: number
  cost: number
}

export interface CustomerChange {
  hub_id: number
  period: string
  user_id: number
  orders: number
}

/** How summaries change when some sales take the place of others; rows that stay as they are may be among them. */
export interface SalesChanges {
  totals: TotalsChange[]
  customers: CustomerChange[]
}

export function changesBetween(before: readonly Sale[], after: readonly Sale[]): SalesChanges {
  const totals = new Map<string, TotalsChange>()
  const customers = new Map<string, CustomerChange>()
  for (const sale of before) addSale(-1, sale)
  for (const sale of after) addSale(1, sale)
  return {
    totals: sorted(totals),
    customers: sorted(customers).filter(({ orders }) => orders !== 0),
  }

  function addSale(sign: 1 | -1, { hubId, userId, day, lines }: Sale): void {
    const month = monthOf(day)
    const whole = lines.reduce<Figures>(
      ([allUnits, allRevenue, allCost], [, units, revenue, cost]) => [
        allUnits + units,
        allRevenue + revenue,
        allCost + cost,
      ],
      [0, 0, 0],
    )
    for (const period of [ALL, month, day]) addTotals(sign, { hubId, period, productId: WHOLE_HUB }, whole)
    for (const [productId, ...figures] of lines)
      for (const period of [ALL, month]) addTotals(sign, { hubId, period, productId }, figures)
    for (const period of [ALL, month]) addCustomer(sign, hubId, period, userId)
  }

  function addTotals(
    sign: 1 | -1,
    { hubId, period, productId }: { hubId: number; period: string; productId: number },
    [units, revenue, cost]: Figures,
  ): void {
    const key = `${hubId} ${period} ${productId}`
    const row = totals.get(key) ?? {
      hub_id: hubId,
      period,
      product_id: productId,
      orders: 0,
      units: 0,
      revenue: 0,
      cost: 0,
    }
    row.orders += sign
    row.units += sign * units
    row.revenue += sign * revenue
    row.cost += sign * cost
    totals.set(key, row)
  }

  function addCustomer(sign: 1 | -1, hubId: number, period: string, userId: number): void {
    const key = `${hubId} ${period} ${userId}`
    const row = customers.get(key) ?? { hub_id: hubId, period, user_id: userId, orders: 0 }
    row.orders += sign
    customers.set(key, row)
  }
}

type Figures = readonly [units: number, revenue: number, cost: number]

/** Rows in one order, so that transactions lock them in the same one. */
const sorted = <T>(rows: ReadonlyMap<string, T>): T[] =>
  [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
