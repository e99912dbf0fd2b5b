import { rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { invariants } from '../invariants/evidence.ts'
import { knownSeeds, mutants } from './mutant-list.ts'
import { compiledCopy, knownFirst, type Original, runMutant } from './mutants.ts'

/** The quickest mutants, of different invariants; `npm run mutants` runs all. */
const soonest = mutants.toSorted((one, other) => knownSeeds[one.name]! - knownSeeds[other.name]!)
const chosen = invariants
  .map((invariant) => soonest.find((mutant) => mutant.invariant === invariant)!)
  .toSorted((one, other) => soonest.indexOf(one) - soonest.indexOf(other))
  .slice(0, 4)

let original: Original
beforeAll(async () => {
  original = await compiledCopy(join(import.meta.dirname, '../..'))
})
afterAll(() => rm(original.folder, { recursive: true, force: true }))

test.for(chosen)(
  'the swarm detects a violation of $invariant without its safeguard: $name',
  { timeout: 1_800_000 },
  async (mutant) => {
    const ranges = knownFirst(knownSeeds[mutant.name]!, availableParallelism())
    const { seed, output } = await runMutant(original, mutant, ranges)
    expect(seed, output).toBeDefined()
    if (seed !== knownSeeds[mutant.name]) console.log(`the known seed of “${mutant.name}” is now ${seed}`)
  },
)
