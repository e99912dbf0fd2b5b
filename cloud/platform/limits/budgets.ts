import { Budget, type Axis, type BudgetLimits, type Holder } from '../../../protocol/model/budget.ts'
import type { CloudSettings } from '../settings/limits.ts'

export { networkOf } from '../../../protocol/model/network.ts'

type SettingKey = {
  [Key in keyof CloudSettings]: CloudSettings[Key] extends number ? Key : never
}[keyof CloudSettings]

/** The declaration of a budget. Each number is a setting. */
interface Declared {
  /** The counted thing, as cloud/README prints it. */
  what: string
  /** Absent: only the shares are limited. */
  total?: SettingKey
  shares: Readonly<Partial<Record<Axis, SettingKey>>>
  atShare: BudgetLimits['atShare']
}

/**
 * Every budget that callers share in a process. Declare each budget here: cloud/README prints this list. A test shows
 * for each entry that no network, user, key or tenant can exhaust it.
 */
export const budgets = {
  heldBodies: {
    what: 'bytes of JSON bodies that have arrived and are not complete',
    total: 'httpHeldBodyBytes',
    shares: {
      network: 'httpHeldBodyBytesPerNetwork',
      user: 'httpHeldBodyBytesPerCredential',
      key: 'httpHeldBodyBytesPerCredential',
      tenant: 'httpHeldBodyBytesPerOwner',
    },
    atShare: 'replace',
  },
  uploads: {
    what: 'forms with files that are arriving',
    total: 'uploads',
    shares: {
      network: 'uploadsPerNetwork',
      user: 'uploadsPerUser',
      key: 'uploadsPerKey',
      tenant: 'uploadsPerOwner',
    },
    atShare: 'refuse',
  },
  streams: {
    what: 'open event streams and log streams',
    total: 'streams',
    shares: {
      network: 'streamsPerNetwork',
      user: 'streamsPerUser',
      key: 'streamsPerKey',
      tenant: 'streamsPerOwner',
    },
    atShare: 'refuse',
  },
  mediaTime: {
    what: 'milliseconds of processor time that pictures and videos have taken within a minute',
    shares: {
      network: 'mediaMsPerNetwork',
      user: 'mediaMsPerUser',
      key: 'mediaMsPerKey',
      tenant: 'mediaMsPerOwner',
    },
    atShare: 'refuse',
  },
  storedAnswers: {
    what: 'bytes of answers stored for an Idempotency-Key within 24 hours',
    shares: {
      network: 'storedAnswerBytesPerNetwork',
      user: 'storedAnswerBytesPerUser',
      key: 'storedAnswerBytesPerKey',
    },
    atShare: 'refuse',
  },
  brokerUnsigned: {
    what: 'connections to the embedded broker before sign-in',
    total: 'brokerUnsigned',
    shares: { network: 'brokerUnsignedPerNetwork' },
    atShare: 'replace',
  },
} as const satisfies Record<string, Declared>

export type BudgetName = keyof typeof budgets
export type Budgets = Readonly<Record<BudgetName, Budget>>

/** The configured limits of a budget. */
export function limitsOf(settings: CloudSettings, name: BudgetName): BudgetLimits {
  const { total, shares, atShare }: Declared = budgets[name]
  const numbers = Object.entries(shares).map(([axis, key]) => [axis, settings[key]])
  return {
    total: total === undefined ? Infinity : settings[total],
    shares: Object.fromEntries(numbers) as BudgetLimits['shares'],
    atShare,
  }
}

/** One budget of each kind. A process needs each exactly once. */
export const openBudgets = (settings: CloudSettings): Budgets =>
  Object.fromEntries(
    (Object.keys(budgets) as BudgetName[]).map((name) => [name, new Budget(limitsOf(settings, name))]),
  ) as unknown as Budgets

/** The holder of a caller's share. `actor` is the credential's (`key:PREFIX`, `identity:SUB`, `address:…`). */
export function holderOf(
  network: string,
  { actor, ownerId }: { actor: string; ownerId?: number | null },
): Holder {
  const tenant = ownerId === undefined || ownerId === null ? {} : { tenant: String(ownerId) }
  if (actor.startsWith('key:')) return { network, key: actor, ...tenant }
  if (actor.startsWith('identity:')) return { network, user: actor, ...tenant }
  return { network }
}
