import type { Evidence, Violation } from './evidence.ts'
import { recountPaid, recountSales, type CountedLine } from './recount.ts'

/** I6: the analytics of each owner equal a recount of the owner's books. */
export function analyticsAddUp({ cloud }: Evidence): Violation[] {
  const { orders, totals, days, customers } = cloud.sales
  const owners = new Set([...orders, ...totals, ...days, ...customers].map(({ owner_id }) => owner_id))
  return [...owners].flatMap((owner) => {
    const own = <T extends { owner_id: number | null }>(rows: readonly T[]): T[] =>
      rows.filter(({ owner_id }) => owner_id === owner)
    return ofOwner({
      ...cloud.sales,
      orders: own(orders),
      totals: own(totals),
      days: own(days),
      customers: own(customers),
    })
  })
}

function ofOwner(sales: Evidence['cloud']['sales']): Violation[] {
  const counted = recountSales(sales)
  return [
    ...differences(
      'totals',
      totalsOf(counted),
      new Map(
        sales.totals.map((row) => [
          `${row.period} ${row.product_id}`,
          [row.orders, row.units, row.revenue, row.cost, row.customers],
        ]),
      ),
    ),
    ...differences(
      'days',
      daysOf(recountPaid(sales)),
      new Map(
        sales.days.map(({ part, day, key, name, product_id, ...row }) => [
          [part, day, key, name, product_id].join('|'),
          [row.orders, row.units, row.revenue, row.cost, row.discount, row.tax, row.refunded],
        ]),
      ),
    ),
    ...differences(
      'customers',
      customersOf(counted),
      new Map(sales.customers.map((row) => [`${row.period} ${row.user_id}`, [row.orders]])),
    ),
  ]
}

type Sums = Map<string, number[]>

/** Sums by `<period> <product>`: orders, units, revenue, cost, customers. Product 0 is the hub. */
export function totalsOf(lines: readonly CountedLine[]): Sums {
  const groups = new Map<string, CountedLine[]>()
  for (const line of lines) {
    const month = line.day.slice(0, 7)
    const keys = [`all ${line.productId}`, `${month} ${line.productId}`, 'all 0', `${month} 0`]
    for (const key of keys) {
      const group = groups.get(key)
      if (group) group.push(line)
      else groups.set(key, [line])
    }
  }
  return new Map(
    [...groups].map(([key, group]) => {
      const total = (pick: (line: CountedLine) => number) => group.reduce((sum, line) => sum + pick(line), 0)
      const hasCustomers = /^(all|\d{4}-\d{2}) 0$/.test(key)
      return [
        key,
        [
          new Set(group.map(({ orderId }) => orderId)).size,
          total(({ units }) => units),
          total(({ revenue }) => revenue),
          total(({ cost }) => cost),
          hasCustomers ? new Set(group.map(({ userId }) => userId)).size : 0,
        ],
      ]
    }),
  )
}

/** Sums by part of a day: orders that were not refunded in full, units, and money. */
function daysOf(lines: readonly CountedLine[]): Sums {
  const parts = new Map<string, CountedLine[]>()
  for (const line of lines)
    for (const part of [
      ['hub', line.day, '', '', 0],
      ['hour', line.day, line.hour, '', 0],
      ['utc_hour', ...new Date(line.at).toISOString().slice(0, 13).split('T'), '', 0],
      ['product', line.day, line.upc, line.name, line.productId],
      ['category', line.day, line.category, '', 0],
    ]) {
      const group = parts.get(part.join('|'))
      if (group) group.push(line)
      else parts.set(part.join('|'), [line])
    }
  const figures = ['units', 'revenue', 'cost', 'discount', 'tax', 'refunded'] as const
  return new Map(
    [...parts].map(([key, group]) => [
      key,
      [
        new Set(group.filter(({ isWhole }) => !isWhole).map(({ orderId }) => orderId)).size,
        ...figures.map((name) => group.reduce((sum, line) => sum + line[name], 0)),
      ],
    ]),
  )
}

/** Orders by `<period> <user>`. */
function customersOf(lines: readonly CountedLine[]): Sums {
  const orders = new Map<string, Set<number>>()
  for (const { day, userId, orderId } of lines)
    for (const period of ['all', day.slice(0, 7)]) {
      const key = `${period} ${userId}`
      orders.set(key, (orders.get(key) ?? new Set()).add(orderId))
    }
  return new Map([...orders].map(([key, ids]) => [key, [ids.size]]))
}

function differences(what: string, expected: Sums, found: Sums): Violation[] {
  const keys = [...new Set([...expected.keys(), ...found.keys()])]
  return keys.flatMap((key) => {
    const [should, is] = [expected.get(key) ?? [], found.get(key) ?? []]
    const same = Array.from({ length: 7 }, (_, index) => (should[index] ?? 0) === (is[index] ?? 0)).every(
      Boolean,
    )
    return same
      ? []
      : [
          {
            invariant: 'I6' as const,
            text: `sales ${what} of ${key} are ${is.join('/')}, the books say ${should.join('/')}`,
          },
        ]
  })
}
