import { counted } from '../../../protocol/model/counted.ts'
import type { z } from 'zod'
import type { ValidationItem } from '../../../protocol/contract/errors.ts'

/** The part of a request that contained a value. */
export type Place = 'query' | 'path' | 'body' | 'header'
type Issue = z.core.$ZodIssue
type Description = Pick<ValidationItem, 'msg' | 'type' | 'ctx'>

/** Converts a zod issue into items of FastAPI's 422. */
export function itemsOf(place: Place, issue: Issue): ValidationItem[] {
  const loc = [place, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))]
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => ({ loc: [...loc, key], ...extra }))
  return [{ loc, ...describe(issue), ...echo(issue.input) }]
}

function describe(issue: Exclude<Issue, z.core.$ZodIssueUnrecognizedKeys>): Description {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? missing : (wrongType[issue.expected] ?? valueError(issue.message))
    case 'too_small':
      return tooSmall(issue)
    case 'too_big':
      return tooBig(issue)
    case 'invalid_format':
      return { type: 'string_pattern_mismatch', msg: formatRules[issue.format] ?? issue.message }
    case 'invalid_value': {
      if (issue.input === undefined) return missing
      const expected = alternatives(
        issue.values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))),
      )
      return { type: 'literal_error', msg: `Input should be ${expected}`, ctx: { expected } }
    }
    case 'not_multiple_of':
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return valueError(issue.message)
  }
}

export const missing: Description = { type: 'missing', msg: 'Field required' }
export const extra: Description = { type: 'extra_forbidden', msg: 'Extra inputs are not permitted' }
const integer: Description = {
  type: 'int_parsing',
  msg: 'Input should be a valid integer: a whole number, written in digits',
}
/** By zod's name of the expected type. Every number of these interfaces is an integer. */
const wrongType: Partial<Record<string, Description>> = {
  number: integer,
  int: integer,
  boolean: { type: 'bool_parsing', msg: 'Input should be a valid boolean, unable to interpret input' },
  string: { type: 'string_type', msg: 'Input should be a valid string' },
  array: { type: 'list_type', msg: 'Input should be a valid list' },
  object: { type: 'value_error', msg: 'Value error, Input should be a JSON object' },
}

/**
 * The rules of zod's formats, because their own messages name the format or print its pattern. Other schemas have their
 * own messages.
 */
const formatRules: Partial<Record<string, string>> = {
  date: 'must be a date, YYYY-MM-DD',
  datetime: 'must be a time, YYYY-MM-DDThh:mm:ss, with Z or an offset such as +02:00',
}

/** `a, b or c`. */
const alternatives = (words: string[]): string =>
  [...(words.length > 1 ? [words.slice(0, -1).join(', ')] : []), words.at(-1)].join(' or ')

export const valueError = (message: string): Description => ({
  type: 'value_error',
  msg: `Value error, ${message}`,
})
export const notUtf8 = valueError('text must be UTF-8')

function tooSmall({ origin, minimum, inclusive }: z.core.$ZodIssueTooSmall): Description {
  const limit = Number(minimum)
  if (origin === 'string')
    return bound(
      'string_too_short',
      'min_length',
      limit,
      `String should have at least ${counted(limit, 'character')}`,
    )
  if (origin === 'array') return valueError(`List should have at least ${counted(limit, 'item')}`)
  return inclusive === false
    ? bound('greater_than', 'gt', limit, `Input should be greater than ${limit}`)
    : bound('greater_than_equal', 'ge', limit, `Input should be greater than or equal to ${limit}`)
}

function tooBig({ origin, maximum, inclusive }: z.core.$ZodIssueTooBig): Description {
  const limit = Number(maximum)
  if (origin === 'string')
    return bound(
      'string_too_long',
      'max_length',
      limit,
      `String should have at most ${counted(limit, 'character')}`,
    )
  if (origin === 'array') return tooMany(limit)
  return inclusive === false
    ? bound('less_than', 'lt', limit, `Input should be less than ${limit}`)
    : bound('less_than_equal', 'le', limit, `Input should be less than or equal to ${limit}`)
}

export const tooMany = (limit: number): Description =>
  bound(
    'too_long',
    'max_length',
    limit,
    `List should have at most ${counted(limit, 'item')} after validation`,
  )

const bound = (type: Description['type'], name: string, limit: number, msg: string): Description => ({
  type,
  msg,
  ctx: { [name]: limit },
})

const ECHO_LIMIT = 200

/** Includes the sent value if it is short and simple. */
function echo(input: unknown): { input?: unknown } {
  if (typeof input === 'number' || typeof input === 'boolean' || input === null) return { input }
  return typeof input === 'string' && input.length <= ECHO_LIMIT ? { input } : {}
}
