import type { Evidence, Violation } from './evidence.ts'
import { recountSales, type CountedLine } from './recount.ts'

/** I6: the analytics equal a recount of the books. */
export function analyticsAddUp({ cloud }: Evidence): Violation[] {
  const counted = recountSales(cloud.sales)
  return [
    ...differences(
      'totals',
      totalsOf(counted),
      new Map(
        cloud.sales.totals.map((row) => [
          `${row.period} ${row.product_id}`,
          [row.orders, row.units, row.revenue, row.cost, row.customers],
        ]),
      ),
    ),
    ...differences(
      'hours',
      hoursOf(counted),
      new Map(
        cloud.sales.hours.map((row) => [
          new Date(row.hour).toISOString(),
          [row.orders, row.units, row.revenue],
        ]),
      ),
    ),
    ...differences(
      'customers',
      customersOf(counted),
      new Map(cloud.sales.customers.map((row) => [`${row.period} ${row.user_id}`, [row.orders]])),
    ),
  ]
}

type Sums = Map<string, number[]>

/** Sums by `<period> <product>`: orders, units, revenue, cost, customers. Product 0 is the hub. */
export function totalsOf(lines: readonly CountedLine[]): Sums {
  const groups = new Map<string, CountedLine[]>()
  for (const line of lines) {
    const month = line.day.slice(0, 7)
    const keys = [
      `all ${line.productId}`,
      `${month} ${line.productId}`,
      'all 0',
      `${month} 0`,
      `${line.day} 0`,
    ]
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

/** Sums by hour of UTC: orders, units, revenue. */
function hoursOf(lines: readonly CountedLine[]): Sums {
  const hours = new Map<string, { orders: Set<number>; units: number; revenue: number }>()
  for (const { at, orderId, units, revenue } of lines) {
    const hour = `${new Date(at).toISOString().slice(0, 13)}:00:00.000Z`
    const sums = hours.get(hour) ?? { orders: new Set(), units: 0, revenue: 0 }
    sums.orders.add(orderId)
    sums.units += units
    sums.revenue += revenue
    hours.set(hour, sums)
  }
  return new Map(
    [...hours].map(([hour, { orders, units, revenue }]) => [hour, [orders.size, units, revenue]]),
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
    const same = Array.from({ length: 5 }, (_, index) => (should[index] ?? 0) === (is[index] ?? 0)).every(
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
