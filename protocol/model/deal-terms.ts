/** The types of a deal's triggers, rewards and constraints. */
export const triggerTypes = ['QUANTITY', 'CATEGORY', 'SPEND', 'FIRST_ORDER', 'ALWAYS'] as const
export type TriggerType = (typeof triggerTypes)[number]

export const rewardTypes = ['FREE_ITEM', 'PERCENT_OFF', 'AMOUNT_OFF', 'FIXED_PRICE', 'CHEAPEST_FREE'] as const
export type RewardType = (typeof rewardTypes)[number]

export const constraintTypes = [
  'SALEAMT',
  'MAXDISCOUNT',
  'MAXUSES',
  'MAXUSES_USER',
  'MAXUSES_DEVICE',
  'FIRSTORDER',
  'STACKABLE',
  'WEEKDAYS',
  'TIMEWINDOW',
] as const
export type ConstraintType = (typeof constraintTypes)[number]

/** Minutes of the day, both inclusive. A window that ends before it begins crosses midnight. */
export interface TimeWindow {
  from: number
  to: number
}

/** The parsed constraints of a deal, in cents; null without such a bound. */
export interface DealTerms {
  leastCart: number | null
  mostDiscount: number | null
  maxUses: number | null
  maxUsesPerUser: number | null
  maxUsesPerDevice: number | null
  firstOrder: boolean
  stackable: boolean
  /** ISO: Monday is 1. */
  weekdays: readonly number[] | null
  window: TimeWindow | null
}

export const unbounded: DealTerms = {
  leastCart: null,
  mostDiscount: null,
  maxUses: null,
  maxUsesPerUser: null,
  maxUsesPerDevice: null,
  firstOrder: false,
  stackable: false,
  weekdays: null,
  window: null,
}

/** The highest bound of money or uses: 100,000.00, or ten million uses. */
const MOST = 10_000_000

interface Reader {
  /** The expected form of the value, for an error message. */
  expected: string
  /** Undefined if the value is invalid. */
  read: (value: string) => Partial<DealTerms> | undefined
}

const whole = (least: number, terms: (value: number) => Partial<DealTerms>): Reader => ({
  expected: `an integer from ${least} to ${MOST}`,
  read(value) {
    const number = /^\d{1,8}$/.test(value) ? Number(value) : -1
    return number >= least && number <= MOST ? terms(number) : undefined
  },
})

const flag = (terms: (value: boolean) => Partial<DealTerms>): Reader => ({
  expected: '1 or 0',
  read: (value) => (value === '1' || value === '0' ? terms(value === '1') : undefined),
})

const readers: Record<ConstraintType, Reader> = {
  SALEAMT: whole(0, (leastCart) => ({ leastCart })),
  MAXDISCOUNT: whole(1, (mostDiscount) => ({ mostDiscount })),
  MAXUSES: whole(1, (maxUses) => ({ maxUses })),
  MAXUSES_USER: whole(1, (maxUsesPerUser) => ({ maxUsesPerUser })),
  MAXUSES_DEVICE: whole(1, (maxUsesPerDevice) => ({ maxUsesPerDevice })),
  FIRSTORDER: flag((firstOrder) => ({ firstOrder })),
  STACKABLE: flag((stackable) => ({ stackable })),
  WEEKDAYS: {
    expected: 'different numbers from 1 (Monday) to 7, separated by commas',
    read(value) {
      if (!/^[1-7](,[1-7]){0,6}$/.test(value)) return undefined
      const weekdays = value.split(',').map(Number)
      return new Set(weekdays).size === weekdays.length ? { weekdays } : undefined
    },
  },
  TIMEWINDOW: {
    expected: 'two different times of the day as HH:MM-HH:MM',
    read(value) {
      const [from, to] = value.split('-').map(minuteOfDay)
      if (!/^[\d:]+-[\d:]+$/.test(value) || from === undefined || to === undefined || from === to)
        return undefined
      return { window: { from, to } }
    },
  },
}

function minuteOfDay(text: string): number | undefined {
  const match = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text)
  return match ? Number(match[1]) * 60 + Number(match[2]) : undefined
}

export interface ConstraintValue {
  type: ConstraintType
  value: string
}

/** The problem of a constraint's value; undefined if it is valid. */
export function constraintProblem({ type, value }: ConstraintValue): string | undefined {
  const { read, expected } = readers[type]
  return read(value) === undefined ? `the value of ${type} should be ${expected}` : undefined
}

/** Parses a deal's constraints. Throws for a value that `constraintProblem` refuses. */
export function readTerms(constraints: readonly ConstraintValue[]): DealTerms {
  return constraints.reduce((terms, { type, value }) => {
    const read = readers[type].read(value)
    if (read === undefined) throw new Error(`a ${type} of '${value}' is no constraint`)
    return { ...terms, ...read }
  }, unbounded)
}
