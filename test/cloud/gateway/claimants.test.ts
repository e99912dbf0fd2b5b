import { expect, test } from 'vitest'
import { heardHolder, judgeClaim, noClaimants, type Claimants } from '../../../cloud/gateway/identity.ts'

const SILENT_MS = 90_000

/** Judges claims `[at, instance]` one after another. */
function judged(claims: readonly (readonly [number, string])[], heardUntil = 0): string[] {
  let claimants: Claimants = noClaimants
  return claims.map(([at, instance]) => {
    if (heardUntil > 0) claimants = heardHolder(claimants, Math.min(at, heardUntil))
    const claim = judgeClaim(claimants, instance, at, SILENT_MS)
    claimants = claim.claimants
    return `${claim.isHolder ? 'welcome' : 'refused'}${claim.isConflict ? ', conflict' : ''}`
  })
}

test('a service that restarts again and again is welcomed', () => {
  const starts = ['a', 'a', 'b', 'b', 'c', 'd'].map((instance, index) => [index * 100, instance] as const)
  expect(judged(starts)).toEqual(Array.from({ length: 6 }, () => 'welcome'))
})

test('the older one of two live services keeps the identity', () => {
  const fight = [
    [0, 'a'],
    [3_600_000, 'b'],
    [3_600_400, 'a'],
    [3_601_000, 'b'],
    [3_601_500, 'a'],
    [3_632_000, 'b'],
  ] as const
  expect(judged(fight, Infinity)).toEqual([
    'welcome',
    'welcome',
    'welcome, conflict',
    'refused, conflict',
    'welcome',
    'refused, conflict',
  ])
})

test('an old board that is switched on again does not take the identity from its replacement', () => {
  const fight = [
    [0, 'new'],
    [3_600_000, 'old'],
    [3_600_400, 'new'],
    [3_600_900, 'old'],
  ] as const
  expect(judged(fight, Infinity).at(-1)).toBe('refused, conflict')
})

test('a service is welcomed when the former one is silent', () => {
  const fight = [
    [0, 'a'],
    [3_600_000, 'b'],
    [3_600_400, 'a'],
    [3_601_000, 'b'],
    [3_601_000 + SILENT_MS, 'b'],
  ] as const
  expect(judged(fight).slice(-2)).toEqual(['refused, conflict', 'welcome'])
})
