import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { axes, type Axis } from '../../../../protocol/model/budget.ts'
import { budgets, holderOf, openBudgets, type BudgetName } from '../../../../cloud/platform/limits/budgets.ts'
import { limitsTable } from './limits-table.ts'
import { notLimits, otherLimits } from './other-limits.ts'
import { cloudSettings } from '../../../../cloud/platform/settings/config.ts'
import { settingsIn, type Setting } from '../../../../protocol/model/program-settings.ts'
import { defaultLimits } from '../../../../cloud/platform/settings/limits.ts'

const declaredSettings: ReadonlyMap<string, Setting> = settingsIn(cloudSettings)
const environmentName = (key: string): string =>
  key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()
const names = Object.keys(budgets) as BudgetName[]
const cases = names.flatMap((name) =>
  (Object.keys(budgets[name].shares) as Axis[]).map((axis) => [name, axis] as const),
)

test.each(cases)(
  'budget %s: one %s that takes as much as possible leaves an honest caller served',
  (name, axis) => {
    const budget = openBudgets(defaultLimits.rules)[name]
    const step = Math.max(1, Math.floor(budget.limits.shares[axis]! / 20))
    /** As many users, keys and networks as the caller likes, all of one network, user, key or tenant. */
    const greedy = (n: number) =>
      Object.fromEntries(axes.map((one) => [one, one === axis ? 'greedy' : `${one}-${n}`]))
    for (let n = 0; n < 200; n += 1) budget.take(greedy(n), { amount: step, evict: () => {} })
    expect(budget.usedBy(axis, 'greedy')).toBeLessThanOrEqual(budget.limits.shares[axis]!)
    expect(budget.limits.shares[axis]!).toBeLessThan(budget.limits.total)
    const honest = Object.fromEntries(axes.map((one) => [one, 'honest']))
    expect(budget.take(honest, { amount: 1, evict: () => {} }).full).toBe(undefined)
  },
)

test.each(names.filter((name) => openBudgets(defaultLimits.rules)[name].limits.total < Infinity))(
  'budget %s: many callers that use up the total leave an honest caller served',
  (name) => {
    const budget = openBudgets(defaultLimits.rules)[name]
    const share = budget.limits.shares.network!
    for (let n = 0; budget.used < budget.limits.total; n += 1) {
      const amount = Math.min(share, budget.limits.total - budget.used)
      budget.take({ network: `network-${n}` }, { amount, evict: () => {} })
    }
    expect(budget.take({ network: 'honest' }, { amount: 1, evict: () => {} }).full).toBe(undefined)
  },
)

test('every budget has a share per network, because new users and new connections are free', () => {
  for (const name of names) expect(budgets[name].shares).toHaveProperty('network')
})

test('a caller is identified by its network, and by its user or API key and owner', () => {
  expect(holderOf('n', { actor: 'key:abcd1234', ownerId: 7 })).toEqual({
    network: 'n',
    key: 'key:abcd1234',
    tenant: '7',
  })
  expect(holderOf('n', { actor: 'identity:ada', ownerId: null })).toEqual({
    network: 'n',
    user: 'identity:ada',
  })
  expect(holderOf('n', { actor: 'address:192.0.2.1' })).toEqual({ network: 'n' })
})

test('cloud/README has the table of all limits', () => {
  const readme = readFileSync(resolve(import.meta.dirname, '../../../../cloud/README.md'), 'utf8')
  expect(readme).toContain(limitsTable().join('\n'))
})

test('every setting that counts something is a budget, another limit with its share, or no limit', () => {
  const ofBudgets = names.flatMap((name) => {
    const { shares, ...declared } = budgets[name]
    return [...Object.values(shares), ...('total' in declared ? [declared.total] : [])].map(environmentName)
  })
  const listed = [...ofBudgets, ...otherLimits.flatMap(({ settings }) => settings), ...notLimits]
  expect(new Set(listed.filter((name) => !declaredSettings.has(name)))).toEqual(new Set())
  const counts = [...declaredSettings].filter(
    ([name, { standard }]) => /^\d+$/.test(standard ?? '') && !/(_MS|_DAYS|_CENTS|_S|PORT)$/.test(name),
  )
  expect(counts.map(([name]) => name).filter((name) => !listed.includes(name))).toEqual([])
})
