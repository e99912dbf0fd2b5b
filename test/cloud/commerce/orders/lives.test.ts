import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { onEachDatabase } from '../../../world/database.ts'
import { lives } from './life-steps.ts'
import { live } from './lives.ts'
import type { Step } from './life-steps.ts'

const RUNS = { SQLite: 60, PostgreSQL: 12 }

/** A unit is resolved while its order is in progress. */
const settledOnTheWay: Step[][] = [
  [{ do: 'put', user: 1, product: 2, quantity: 2 }],
  [{ do: 'pay', user: 1, order: 0, method: 'pm_card_visa' }],
  [
    { do: 'hub', act: 'prepare', pick: 0 },
    { do: 'hub', act: 'doubt that fell', pick: 0 },
  ],
  [{ do: 'hub', act: 'settle', pick: 0 }],
  [{ do: 'hub reports', count: 5 }],
]

/** The units of an order that the cloud has ended fall, are bought by another customer, and are reported afterwards. */
const fallenLate: Step[][] = [
  [
    { do: 'put', user: 2, product: 1, quantity: 2 },
    { do: 'pay', user: 2, order: 0, method: 'pm_card_visa' },
  ],
  [{ do: 'hub', act: 'prepare', pick: 0 }],
  [{ do: 'time', minutes: 31 }, { do: 'sweep' }],
  [
    { do: 'hub', act: 'drop', pick: 0 },
    { do: 'put', user: 3, product: 1, quantity: 3 },
  ],
  [{ do: 'events' }],
  [{ do: 'hub', act: 'drop', pick: 0 }],
  [
    { do: 'pay', user: 3, order: 0, method: 'pm_card_visa' },
    { do: 'put', user: 1, product: 1, quantity: 1 },
  ],
  [{ do: 'hub reports', count: 3 }],
  [{ do: 'hub', act: 'prepare', pick: 0 }],
]

onEachDatabase('orders of several users', (open) => {
  test('I3, I5 and I6 hold and stock is never negative, under any steps of customers, hub, processor and timers', async () => {
    const seen = new Map<string, number>()
    let kind: keyof typeof RUNS = 'SQLite'
    const db = await open()
    if (db.kind === 'postgres') kind = 'PostgreSQL'
    await fc.assert(
      fc.asyncProperty(lives, async (groups) => {
        const { violations, statuses } = await live(await open(), groups)
        for (const status of statuses) seen.set(status, (seen.get(status) ?? 0) + 1)
        expect(violations).toEqual([])
      }),
      { numRuns: RUNS[kind], examples: [[settledOnTheWay], [fallenLate]] },
    )
    console.log(`lives [${kind}]:`, Object.fromEntries([...seen].toSorted(([a], [b]) => (a < b ? -1 : 1))))
    // A test in which nothing is sold, or nothing goes wrong, proves nothing.
    const count = (ending: RegExp) =>
      [...seen].reduce((sum, [status, times]) => sum + (ending.test(status) ? times : 0), 0)
    expect(count(/^60/)).toBeGreaterThan(0)
    expect(count(/refunded$/)).toBeGreaterThan(0)
  }, 120_000)
})
