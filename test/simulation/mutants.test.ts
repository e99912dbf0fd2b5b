import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { knownSeeds, mutants } from './mutant-list.ts'

const root = join(import.meta.dirname, '../..')

test.for(mutants)('mutant: $name: what it takes away is there, once', ({ patches }) => {
  for (const { file, find } of patches)
    expect(readFileSync(join(root, file), 'utf8').split(find), file).toHaveLength(2)
})

test('the seed is known that notices a mutant', () => {
  expect(Object.keys(knownSeeds).toSorted()).toEqual(mutants.map(({ name }) => name).toSorted())
})

test('each invariant has two mutants at least, but for those that only show while they happen', () => {
  for (const invariant of ['I1', 'I2', 'I3', 'I4', 'I5', 'I6', 'I7', 'I8', 'I11', 'I14', 'I15'])
    expect(mutants.filter((mutant) => mutant.invariant === invariant).length).toBeGreaterThanOrEqual(2)
  for (const invariant of ['I9', 'I10', 'I12', 'I13'])
    expect(mutants.some((mutant) => mutant.invariant === invariant)).toBe(true)
})
