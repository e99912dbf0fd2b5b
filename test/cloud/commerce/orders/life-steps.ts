import * as fc from 'fast-check'
import { hubActs, type HubAct } from '../../support/paper-hub.ts'

export const USERS = 3
const METHODS = [
  'pm_card_visa',
  'pm_card_chargeDeclined',
  'pm_card_authenticationRequired',
  'pm_card_refundFail',
  'pm_card_pendingRefund',
  'pm_usBankAccount',
  'external',
  'wallet',
] as const
const MINUTES = [0.1, 0.1, 1, 1, 6, 16, 31, 70] as const

/** A step of a customer, the hub, the processor, an owner, the clock or a timer. */
export type Step =
  | { do: 'put'; user: number; product: number; quantity: number }
  | { do: 'pay'; user: number; order: number; method: (typeof METHODS)[number] }
  | { do: 'confirm' | 'delete' | 'reorder' | 'refund'; user: number; order: number; part: number }
  | { do: 'transfer'; user: number; order: number }
  | { do: 'deposit'; user: number; method: (typeof METHODS)[number] }
  | { do: 'integrator'; bin: number }
  | { do: 'hub'; act: HubAct; pick: number }
  | { do: 'hub reports'; count: number }
  /** An event of the processor arrives: a late one, or a repetition. */
  | { do: 'webhook'; pick: number }
  /** An event is lost. */
  | { do: 'webhook lost'; pick: number }
  | { do: 'events' | 'sweep' }
  | { do: 'processor'; isUp: boolean; early: boolean }
  | { do: 'time'; minutes: (typeof MINUTES)[number] }

const user = fc.integer({ min: 1, max: USERS })
/** The selected order of a user. */
const order = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat({ max: 3 }) })
const pick = fc.nat({ max: 5 })
/** Mostly a method with a successful payment. */
const method = fc.constantFrom(...METHODS, ...Array<'pm_card_visa'>(5).fill('pm_card_visa'))
const act = fc.constantFrom<HubAct[]>(
  ...hubActs,
  ...(['prepare', 'prepare', 'drop', 'drop', 'drop', 'ready', 'complete'] as const),
)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      user,
      product: fc.integer({ min: 1, max: 3 }),
      quantity: fc.oneof(
        { weight: 4, arbitrary: fc.integer({ min: 1, max: 3 }) },
        { weight: 1, arbitrary: fc.constant(0) },
      ),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('pay' as const), user, order, method }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('confirm', 'delete', 'reorder', 'refund'),
      user,
      order,
      part: fc.nat({ max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('transfer' as const), user, order }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deposit' as const), user, method }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('integrator' as const), bin: fc.integer({ min: 1, max: 4 }) }),
  },
  {
    weight: 12,
    arbitrary: fc.record({ do: fc.constant('hub' as const), act, pick }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('hub reports' as const), count: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('webhook' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('webhook lost' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('events' as const, 'sweep' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('processor' as const), isUp: fc.boolean(), early: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('time' as const), minutes: fc.constantFrom(...MINUTES) }),
  },
)

/** Groups of steps, one after the other; the steps of a group are simultaneous. */
export const lives: fc.Arbitrary<Step[][]> = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), {
  minLength: 5,
  maxLength: 60,
  size: 'max',
})
