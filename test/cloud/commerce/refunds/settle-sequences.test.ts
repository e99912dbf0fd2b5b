import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { readOwed } from '../../../../cloud/commerce/refunds/owed.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { ApiError } from '../../../../cloud/platform/api-error.ts'
import { collectCloud } from '../../../invariants/collect-cloud.ts'
import type { Evidence } from '../../../invariants/evidence.ts'
import { moneyAddsUp } from '../../../invariants/money.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { sendEvent } from '../../support/webhooks.ts'
import {
  alarm,
  begun,
  hours,
  ready,
  restEndsAt,
  returned,
  seen,
  settle,
  unit,
  who,
  type Weather,
  type World,
} from './support/failing-refunds.ts'

/** Steps of a shop with failing refunds. A person settles refunds that were read at some time before. */
const Step = fc.oneof(
  fc.record({ kind: fc.constant('unit' as const), product: fc.integer({ min: 1, max: 2 }) }),
  fc.record({ kind: fc.constant('amount' as const), amount: fc.integer({ min: 1, max: 400 }) }),
  fc.record({
    kind: fc.constant('ends' as const),
    how: fc.constantFrom('ready' as const, 'failed' as const),
  }),
  fc.record({ kind: fc.constant('hours' as const), count: fc.integer({ min: 0, max: 3 }) }),
  fc.record({
    kind: fc.constant('weather' as const),
    is: fc.constantFrom<Weather>('good', 'down', 'late', 'refuses', 'refuses', 'refuses'),
  }),
  fc.record({ kind: fc.constant('bank returns' as const) }),
  fc.record({ kind: fc.constant('looks' as const) }),
  fc.record({
    kind: fc.constant('settles' as const),
    mask: fc.integer({ min: 1, max: 7 }),
    races: fc.boolean(),
  }),
)
type Step = typeof Step extends fc.Arbitrary<infer T> ? T : never

/** The open refunds as a person read them, each with its amount. */
type Read = { id: number; amount: number }[]

async function take(world: World, step: Step, read: Read): Promise<Read> {
  const { shop, orderId } = world
  const refused = (error: unknown): void => {
    if (!(error instanceof ApiError)) throw error
  }
  switch (step.kind) {
    case 'unit':
      await unit(world, step.product).catch(refused)
      return read
    case 'amount':
      await refundOrder(shop.services, { orderId, ...who, amount: step.amount }).catch(refused)
      return read
    case 'ends':
      if (step.how === 'ready') await ready(world)
      else await shop.report({ kind: 'order.failed', order_id: orderId, reason: 'jam', bins: [1], lines: [] })
      return read
    case 'hours':
      await hours(world, step.count)
      return read
    case 'weather':
      world.weather.now = step.is
      return read
    case 'bank returns': {
      const done = (await shop.bank.refunds()).find(({ status }) => status === 'succeeded')
      if (!done) return read
      await shop.bank.returnRefund(done.id)
      const object = { id: done.id, status: 'failed', failure_reason: 'lost_or_stolen_card' }
      await sendEvent(shop, { id: `evt_${done.id}`, type: 'refund.failed', object })
      return read
    }
    case 'looks': {
      const { owed } = await readOwed(shop.context.db.kysely, await shop.order(orderId))
      return owed.map(({ id, amount }) => ({ id, amount }))
    }
    case 'settles': {
      const chosen = read.filter((_, index) => (step.mask & (1 << (index % 3))) !== 0)
      if (chosen.length === 0) return read
      const amount = chosen.reduce((sum, one) => sum + one.amount, 0)
      const act = settle(world, { ids: chosen.map(({ id }) => id), amount }).catch(refused)
      await Promise.all(step.races ? [act, shop.work.drain()] : [act])
      return read
    }
  }
}

/** The customer never gets more than was paid, and the open alarm has exactly the refunds that are owed. */
async function isRight(world: World): Promise<void> {
  const { bank, outside } = await returned(world)
  expect(bank + outside).toBeLessThanOrEqual(world.paid)
  const evidence = { cloud: await collectCloud(world.shop.context.db.kysely, 1) } as Evidence
  const unconfirmed = (await world.shop.refunds(world.orderId)).some(({ status }) => status === 'pending')
  if (!unconfirmed) expect(moneyAddsUp(evidence)).toEqual([])
  const owed = await seen(world)
  if (owed.ids.length > 0)
    expect(await alarm(world)).toMatchObject({ refund_ids: owed.ids, amount: owed.amount })
  else if (!unconfirmed) expect(await alarm(world)).toBeUndefined()
}

onEachDatabase('any sequence of failing refunds and settlements', (open) => {
  test(
    'the customer gets at most the paid amount, and a person can end every alarm',
    { timeout: 120_000 },
    async () => {
      const { kind } = await open()
      await fc.assert(
        fc.asyncProperty(fc.array(Step, { minLength: 5, maxLength: 18 }), async (steps) => {
          const world = await begun(open, 'refuses')
          let read: Read = []
          for (const step of steps) {
            read = await take(world, step, read)
            await isRight(world)
          }
          world.weather.now = 'good'
          await hours(world, 8, 12)
          if ((await seen(world)).ids.length > 0) await settle(world, await seen(world))
          const { bank, outside } = await returned(world)
          await restEndsAt(world, { bank, outside })
        }),
        { numRuns: kind === 'sqlite' ? 15 : 4 },
      )
    },
  )
})
