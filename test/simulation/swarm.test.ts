import { afterAll, expect, test } from 'vitest'
import { service } from '../support/services.ts'
import { Coverage } from './coverage.ts'
import { dropTemplate } from './database-server.ts'
import { runSeed, type SeedOptions } from './run-seed.ts'

/** Seeds that once showed a defect, without updates and certificates. */
const pinned = [
  4, 11, 15, 16, 101, 106, 302, 7007, 60_179, 60_426, 60_709, 61_603, 70_112, 70_868, 73_310, 74_138, 75_550,
  75_580, 76_084, 80_073, 80_261, 80_645, 96_621, 98_753,
]
const fresh = Array.from({ length: 8 }, (_, index) => 20_001 + index)

test.for(pinned)('no invariant is violated under pinned seed %i', { timeout: 120_000 }, async (seed) => {
  expect(await troubleOf(seed, new Coverage(), { hasFleet: false })).toEqual([])
})

test('no invariant is violated in a storm of faults and crashes', { timeout: 900_000 }, async () => {
  const coverage = new Coverage()
  for (const seed of fresh)
    expect(await troubleOf(seed, coverage, { hasFleet: false }), `seed ${seed}`).toEqual([])
  // A storm without events would prove nothing.
  expect(coverage.counts.get('order ended 60')).toBeGreaterThan(10)
  expect(coverage.counts.get('hub lives ended')).toBeGreaterThan(20)
  expect(coverage.counts.get('cloud lives ended')).toBeGreaterThan(10)
})

test(
  'no invariant is violated while hubs renew certificates, are revoked and updated',
  { timeout: 900_000 },
  async () => {
    const coverage = new Coverage()
    for (const seed of [30_101, 30_103, 30_203, 30_204])
      expect(await troubleOf(seed, coverage, { hasFleet: true }), `seed ${seed}`).toEqual([])
    for (const event of ['certificate renewed', 'updated', 'returned to its release', 'revoked', 'replaced'])
      expect(coverage.counts.get(`board ${event}`), event).toBeGreaterThan(0)
  },
)

const postgresUrl = process.env['TEST_POSTGRES_URL']
afterAll(() => (postgresUrl ? dropTemplate(postgresUrl) : undefined))

// A server's parallel work is not deterministic: a seed differs in each run there.
service('postgres')(
  'no invariant is violated in a storm over a database server',
  async () => {
    const coverage = new Coverage()
    for (const seed of [1, 2])
      expect(await troubleOf(seed, coverage, { postgresUrl }), `seed ${seed}`).toEqual([])
    expect(coverage.counts.get('order ended 60')).toBeGreaterThan(0)
  },
  900_000,
)

test('a seed has the same events in every run', { timeout: 120_000 }, async () => {
  const stories = [await runSeed(3), await runSeed(3)].map(({ evidence }) =>
    evidence.map(({ world }) => world.motions),
  )
  expect(stories[0]).toHaveLength(2)
  expect(stories[1]).toEqual(stories[0])
})

async function troubleOf(seed: number, coverage: Coverage, options: SeedOptions = {}): Promise<string[]> {
  const { violations, failure, coverage: met } = await runSeed(seed, options)
  coverage.merge(met)
  const defect =
    failure instanceof Error ? [failure.stack ?? failure.message] : failure === undefined ? [] : ['defect']
  return [...violations.map(({ invariant, text }) => `${invariant}: ${text}`), ...defect]
}
