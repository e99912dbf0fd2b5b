import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { invariants } from '../invariants/evidence.ts'
import { knownSeeds, mutants } from './mutant-list.ts'
import { compiledCopy, runMutant } from './mutants.ts'

/** One of each invariant; `npm run mutants` has all. */
const chosen = invariants.map((invariant) => mutants.find((mutant) => mutant.invariant === invariant)!)

let whole: string
beforeAll(async () => {
  whole = await compiledCopy(join(import.meta.dirname, '../..'), [])
})
afterAll(() => rm(whole, { recursive: true, force: true }))

test.for(chosen)('$invariant is seen to be violated without its safeguard: $name', async (mutant) => {
  const { seed, output } = await runMutant(whole, mutant, {
    seeds: 1,
    from: knownSeeds[mutant.name]!,
    jobs: 1,
  })
  expect(seed, output).toBe(knownSeeds[mutant.name])
})
