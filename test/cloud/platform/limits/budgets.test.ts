import { expect, test } from 'vitest'
import { axes, type Axis } from '../../../../protocol/model/budget.ts'
import { budgets, holderOf, openBudgets, type BudgetName } from '../../../../cloud/platform/limits/budgets.ts'
import { defaultSettings } from '../../../../cloud/platform/settings/rule-settings.ts'

const names = Object.keys(budgets) as BudgetName[]
const cases = names.flatMap((name) =>
  (Object.keys(budgets[name].shares) as Axis[]).map((axis) => [name, axis] as const),
)

test.each(cases)('budget %s: one %s that takes all it can leaves an honest caller served', (name, axis) => {
  const budget = openBudgets(defaultSettings)[name]
  const step = Math.max(1, Math.floor(budget.limits.shares[axis]! / 20))
  /** As many users, keys and networks as the caller likes, all of one network, user, key or tenant. */
  const greedy = (n: number) =>
    Object.fromEntries(axes.map((one) => [one, one === axis ? 'greedy' : `${one}-${n}`]))
  for (let n = 0; n < 200; n += 1) budget.take(greedy(n), { amount: step, evict: () => {} })
  expect(budget.usedBy(axis, 'greedy')).toBeLessThanOrEqual(budget.limits.shares[axis]!)
  expect(budget.limits.shares[axis]!).toBeLessThan(budget.limits.total)
  const honest = Object.fromEntries(axes.map((one) => [one, 'honest']))
  expect(budget.take(honest, { amount: 1, evict: () => {} }).full).toBe(undefined)
})

test.each(names.filter((name) => openBudgets(defaultSettings)[name].limits.total < Infinity))(
  'budget %s: many callers who use up the total leave an honest caller served',
  (name) => {
    const budget = openBudgets(defaultSettings)[name]
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

test('a caller is recognised by its network, and by its user or API key and owner', () => {
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
