import { expect, test } from 'vitest'
import { Coverage } from './coverage.ts'
import { runSeed } from './run-seed.ts'

/** Seeds that once showed a defect. */
const pinned = [4, 15, 16]
const fresh = Array.from({ length: 8 }, (_, index) => 20_001 + index)

test.for(pinned)('no invariant is violated under pinned seed %i', { timeout: 120_000 }, async (seed) => {
  expect(await troubleOf(seed, new Coverage())).toEqual([])
})

test('no invariant is violated in a storm of faults and crashes', { timeout: 300_000 }, async () => {
  const coverage = new Coverage()
  for (const seed of fresh) expect(await troubleOf(seed, coverage), `seed ${seed}`).toEqual([])
  // A storm that nothing happened in would prove nothing.
  expect(coverage.counts.get('order ended 60')).toBeGreaterThan(10)
  expect(coverage.counts.get('hub lives ended')).toBeGreaterThan(20)
  expect(coverage.counts.get('cloud lives ended')).toBeGreaterThan(10)
})

test('a seed always tells the same story', { timeout: 120_000 }, async () => {
  const stories = [await runSeed(3), await runSeed(3)].map(({ evidence }) =>
    evidence.map(({ world }) => world.motions),
  )
  expect(stories[0]).toHaveLength(2)
  expect(stories[1]).toEqual(stories[0])
})

async function troubleOf(seed: number, coverage: Coverage): Promise<string[]> {
  const { violations, failure, coverage: met } = await runSeed(seed)
  coverage.merge(met)
  const defect =
    failure instanceof Error ? [failure.stack ?? failure.message] : failure === undefined ? [] : ['defect']
  return [...violations.map(({ invariant, text }) => `${invariant}: ${text}`), ...defect]
}
