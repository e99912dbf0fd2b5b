import type { z } from 'zod'

type Issue = z.core.$ZodIssue

/** A problem of a value that a person wrote, with its path. */
export interface SchemaProblem {
  path: PropertyKey[]
  words: string
}

/**
 * Describes the problems of a value and names the possible values. A message that the schema itself defines is used
 * unchanged.
 */
export const schemaProblems = ({ issues }: z.ZodError, value: unknown): SchemaProblem[] =>
  issues.flatMap((issue) => problemsOf(issue, value, []))

/** `devices.2.kind: is missing`. `above`: parts before the path. */
export const problemText = ({ path, words }: SchemaProblem, ...above: string[]): string => {
  const where = [...above, ...path.map(String)].filter((part) => part !== '').join('.')
  return where === '' ? words : `${where}: ${words}`
}

function problemsOf(issue: Issue, root: unknown, above: readonly PropertyKey[]): SchemaProblem[] {
  const path = [...above, ...issue.path]
  const value = valueAt(root, path)
  const say = (words: string): SchemaProblem[] => [{ path, words }]
  if (!isStandard(issue.message)) return say(issue.message)
  if (value === undefined && issue.code !== 'unrecognized_keys') return say('is missing')
  switch (issue.code) {
    case 'invalid_type':
      return say(`must be ${nameOfType(issue.expected)}, not ${shown(value)}`)
    case 'invalid_value':
      return say(`must be ${listed(issue.values)}, not ${shown(value)}`)
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({ path: [...path, key], words: 'there is no such field' }))
    case 'too_small':
      return say(`must ${boundOf(issue.origin, 'at least', Number(issue.minimum), issue.inclusive)}`)
    case 'too_big':
      return say(`must ${boundOf(issue.origin, 'at most', Number(issue.maximum), issue.inclusive)}`)
    case 'invalid_union':
      return problemsOfUnion(issue.errors, { root, path, value })
    case 'invalid_format':
      return say(`is no valid ${issue.format === 'regex' ? 'text' : issue.format}: ${shown(value)}`)
    case 'custom':
    case 'invalid_element':
    case 'invalid_key':
    case 'not_multiple_of':
      return say(issue.message)
  }
}

/**
 * The problems of the branch that fits best, if the value fits one branch up to some part. Otherwise the expectations
 * of all branches.
 */
function problemsOfUnion(
  branches: readonly (readonly Issue[])[],
  { root, path, value }: { root: unknown; path: readonly PropertyKey[]; value: unknown },
): SchemaProblem[] {
  const problems = branches.map((issues) => issues.flatMap((issue) => problemsOf(issue, root, path)))
  const inside = problems
    .filter((each) => each.every((problem) => problem.path.length > path.length))
    .toSorted((a, b) => a.length - b.length)[0]
  if (inside !== undefined && inside.length > 0) return inside
  const wanted = [
    ...new Set(problems.flat().map(({ words }) => words.replace(/^must be (.*), not .*$/, '$1'))),
  ]
  const words = wanted.length === 0 ? 'has no possible value here' : `must be ${wanted.join(', or ')}`
  return [{ path: [...path], words: `${words}, not ${shown(value)}` }]
}

/** Whether the message is the library's default. */
const isStandard = (message: string): boolean => /^(Invalid |Too (small|big)|Unrecognized key)/.test(message)

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as Record<PropertyKey, unknown>)[part]
  }
  return value
}

const types: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}
const nameOfType = (type: string): string => types[type] ?? type

/** Quotes a short value; names the type of a long one. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length <= 60 ? text : nameOfType(typeof value)
}

const listed = (values: readonly unknown[]): string =>
  values.length === 1 ? shown(values[0]) : `one of ${values.map(shown).join(', ')}`

function boundOf(origin: string, least: 'at least' | 'at most', bound: number, isInclusive = true): string {
  const limit = isInclusive ? `${least} ${bound}` : `${least === 'at least' ? 'more' : 'less'} than ${bound}`
  if (origin === 'string') return `have ${limit} character${bound === 1 ? '' : 's'}`
  if (origin === 'array' || origin === 'set') return `have ${limit} entr${bound === 1 ? 'y' : 'ies'}`
  return `be ${limit}`
}
