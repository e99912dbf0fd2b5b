import { expect, test } from 'vitest'
import { Budget, type Holder } from '../../../protocol/model/budget.ts'

/** Takes a hold and records its eviction. */
function take(budget: Budget, holder: Holder, amount = 1) {
  const state = { isEvicted: false }
  const { hold, full } = budget.take(holder, { amount, evict: () => void (state.isEvicted = true) })
  return { hold, full, state }
}

const replacing = (total: number, share: number) =>
  new Budget({ total, shares: { network: share }, atShare: 'replace' })

test('a caller above the share of its network, user, key or tenant is refused, and the axis is named', () => {
  for (const axis of ['network', 'user', 'key', 'tenant'] as const) {
    const budget = new Budget({ total: 100, shares: { [axis]: 2 }, atShare: 'refuse' })
    const caller = { [axis]: 'a' }
    expect([1, 2, 3].map(() => budget.take(caller).full)).toEqual([undefined, undefined, axis])
    expect(budget.take({ [axis]: 'b' }).full).toBe(undefined)
    expect(budget.used).toBe(3)
  }
})

test('a released hold can be taken again, and a second release frees nothing', () => {
  const budget = new Budget({ total: 2, shares: { user: 2 }, atShare: 'refuse' })
  const first = budget.take({ user: 'a' }).hold!
  budget.take({ user: 'a' })
  expect(budget.take({ user: 'a' }).full).toBe('user')
  first.release()
  first.release()
  expect(budget.used).toBe(1)
  expect(budget.take({ user: 'a' }).full).toBe(undefined)
  expect(budget.usedBy('user', 'a')).toBe(2)
})

test('when the total is used up, the largest network loses a hold to a smaller one and is refused itself', () => {
  const budget = new Budget({ total: 4, shares: { network: 3 }, atShare: 'refuse' })
  const [a, , , b] = ['a', 'a', 'a', 'b'].map((network) => take(budget, { network }))
  expect(take(budget, { network: 'a' }).full).toBe('network')
  expect(take(budget, { network: 'c' }).full).toBe(undefined)
  expect([a!.state.isEvicted, b!.state.isEvicted]).toEqual([true, false])
  expect(budget.used).toBe(4)
  expect(budget.usedBy('network', 'a')).toBe(2)
})

test('callers of ten thousand networks cannot lock out one more network', () => {
  const budget = new Budget({ total: 10_000, shares: { network: 20 }, atShare: 'refuse' })
  for (let n = 0; n < 10_000; n += 1) take(budget, { network: `n${n}` })
  expect(take(budget, { network: 'honest' }).full).toBe(undefined)
  expect(budget.used).toBe(10_000)
})

test('a replacing share evicts an idle hold first, then the hold that was busy longest', () => {
  const budget = replacing(100, 3)
  const holds = [1, 2, 3].map(() => take(budget, { network: 'a' }))
  holds[1]!.hold!.setIdle(true)
  take(budget, { network: 'a' })
  expect(holds.map(({ state }) => state.isEvicted)).toEqual([false, true, false])
  take(budget, { network: 'a' })
  expect(holds.map(({ state }) => state.isEvicted)).toEqual([true, true, false])
  expect(budget.usedBy('network', 'a')).toBe(3)
})

test('a hold that becomes idle again counts as the latest idle hold', () => {
  const budget = replacing(100, 2)
  const [first, second] = [take(budget, { network: 'a' }), take(budget, { network: 'a' })]
  for (const { hold } of [first, second]) hold!.setIdle(true)
  first.hold!.setIdle(false)
  first.hold!.setIdle(true)
  take(budget, { network: 'a' })
  expect([first.state.isEvicted, second.state.isEvicted]).toEqual([false, true])
})

test('the largest hold of a network in bytes is evicted for a smaller one, and cannot grow itself', () => {
  const budget = replacing(100, 50)
  const large = take(budget, { network: 'a' }, 40)
  const small = take(budget, { network: 'a' }, 10)
  expect(large.hold!.grow(1)).toBe('network')
  expect(small.hold!.grow(5)).toBe(null)
  expect(large.state.isEvicted).toBe(true)
  expect(budget.used).toBe(15)
  expect(large.hold!.grow(1)).toBe('total')
})

test('a hold that cannot be evicted never makes room', () => {
  const budget = replacing(2, 2)
  budget.take({ network: 'a' })
  budget.take({ network: 'a' })
  expect(take(budget, { network: 'a' }).full).toBe('network')
  expect(take(budget, { network: 'b' }).full).toBe('total')
})

test('a hold that moves to another holder frees the share of the first one', () => {
  const budget = new Budget({ total: 9, shares: { network: 1 }, atShare: 'refuse' })
  const { hold } = budget.take({ network: 'proxy' })
  expect(hold!.moveTo({ network: 'a' })).toBe(null)
  expect(budget.usedBy('network', 'proxy')).toBe(0)
  const second = budget.take({ network: 'proxy' }).hold!
  expect(second.moveTo({ network: 'a' })).toBe('network')
  expect(budget.usedBy('network', 'proxy')).toBe(1)
  expect(budget.used).toBe(2)
})
