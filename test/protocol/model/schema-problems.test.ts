import { expect, test } from 'vitest'
import { z } from 'zod'
import { problemText, schemaProblems } from '../../../protocol/model/schema-problems.ts'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'

const schema = z.strictObject({
  name: z.string().min(1).max(5),
  status: z.union([z.enum(['NEW', 'DONE']), z.array(z.enum(['NEW', 'DONE'])).min(1)]).optional(),
  count: z.int().min(2).max(4).optional(),
  flag: z.boolean().optional(),
  items: z
    .array(z.strictObject({ row: z.number() }))
    .max(1)
    .optional(),
  shape: z.union([z.object({ a: z.number() }), z.string()]).optional(),
  code: z.string().regex(/^x/, 'must begin with x').optional(),
  kind: z.literal('one').optional(),
})

const problemsOf = (value: unknown): string[] => {
  const { error } = schema.safeParse(value)
  return schemaProblems(error!, value).map((problem) => problemText(problem))
}

test.each([
  [{}, ['name: is missing']],
  [{ name: 3 }, ['name: must be a text, not 3']],
  [{ name: '' }, ['name: must have at least 1 character']],
  [{ name: 'toolong' }, ['name: must have at most 5 characters']],
  [{ name: 'a', status: 'OLD' }, ['status: must be one of "NEW", "DONE", or a list, not "OLD"']],
  [{ name: 'a', status: ['OLD'] }, ['status.0: must be one of "NEW", "DONE", not "OLD"']],
  [{ name: 'a', count: 1 }, ['count: must be at least 2']],
  [{ name: 'a', count: 'two' }, ['count: must be a number, not "two"']],
  [{ name: 'a', count: 2.5 }, ['count: must be a whole number, not 2.5']],
  [{ name: 'a', flag: 'yes' }, ['flag: must be true or false, not "yes"']],
  [{ name: 'a', items: [{}] }, ['items.0.row: is missing']],
  [{ name: 'a', items: [{ row: 1 }, { row: 2 }] }, ['items: must have at most 1 entry']],
  [{ name: 'a', colour: 'red' }, ['colour: there is no such field']],
  [{ name: 'a', shape: { a: 'x' } }, ['shape.a: must be a number, not "x"']],
  [{ name: 'a', code: 'y' }, ['code: must begin with x']],
  [{ name: 'a', kind: 'two' }, ['kind: must be "one", not "two"']],
  [[], ['must be an object, not a list']],
])('the problems of %j are described in words', (value, problems) => {
  expect(problemsOf(value)).toEqual(problems)
})

test('no problem of a hardware description uses the wording of the schema library', () => {
  const value = { hubId: 'x', controllers: [{ id: 3, devices: [{ kind: 'bin' }] }], gpio: null }
  const { error } = HardwareDescription.safeParse(value)
  const words = schemaProblems(error!, value).map((problem) => problemText(problem))
  expect(words.length).toBeGreaterThan(2)
  for (const each of words) expect(each).not.toMatch(/Invalid|expected|received|undefined/)
})
