import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { knownSeeds, mutants } from './mutant-list.ts'

const root = join(import.meta.dirname, '../..')

test.for(mutants)('the source has the patched text of the mutant exactly once: $name', ({ patches }) => {
  for (const { file, find } of patches)
    expect(readFileSync(join(root, file), 'utf8').split(find), file).toHaveLength(2)
})

test('each mutant has a known seed that detects it', () => {
  expect(Object.keys(knownSeeds).toSorted()).toEqual(mutants.map(({ name }) => name).toSorted())
})

test('each invariant has at least two mutants, except invariants that need an observer', () => {
  for (const invariant of ['I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I7', 'I8', 'I11', 'I14', 'I15'])
    expect(mutants.filter((mutant) => mutant.invariant === invariant).length).toBeGreaterThanOrEqual(2)
  for (const invariant of ['I9', 'I10', 'I12', 'I13'])
    expect(mutants.some((mutant) => mutant.invariant === invariant)).toBe(true)
})
