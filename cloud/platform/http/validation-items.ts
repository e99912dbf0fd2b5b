import type { z } from 'zod'
import type { ValidationItem } from '../../../protocol/contract/errors.ts'

export type Place = 'query' | 'path' | 'body' | 'header'
type Issue = z.core.$ZodIssue

/** A zod issue in the words of FastAPI's 422 (contract §2). */
export function itemsOf(place: Place, issue: Issue): ValidationItem[] {
  const loc = [place, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))]
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      loc: [...loc, key],
      msg: 'Extra inputs are not permitted',
      type: 'extra_forbidden',
    }))
  return [{ loc, ...describe(issue), ...echo(issue.input) }]
}

type Description = Pick<ValidationItem, 'msg' | 'type' | 'ctx'>

function describe(issue: Exclude<Issue, z.core.$ZodIssueUnrecognizedKeys>): Description {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? missing : (wrongType[issue.expected] ?? valueError(issue.message))
    case 'too_small':
      return tooSmall(issue)
    case 'too_big':
      return tooBig(issue)
    case 'invalid_format':
      return {
        type: 'string_pattern_mismatch',
        msg: issue.pattern === undefined ? issue.message : `String should match pattern '${issue.pattern}'`,
        ...(issue.pattern !== undefined && { ctx: { pattern: issue.pattern } }),
      }
    case 'invalid_value': {
      if (issue.input === undefined) return missing
      const expected = issue.values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
      return {
        type: 'literal_error',
        msg: `Input should be ${list(expected)}`,
        ctx: { expected: list(expected) },
      }
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
const integer: Description = {
  type: 'int_parsing',
  msg: 'Input should be a valid integer, unable to parse string as an integer',
}
/** By zod's word for what it expected. Every number of these interfaces is an integer. */
const wrongType: Partial<Record<string, Description>> = {
  number: integer,
  int: integer,
  boolean: { type: 'bool_parsing', msg: 'Input should be a valid boolean, unable to interpret input' },
  string: { type: 'string_type', msg: 'Input should be a valid string' },
  array: { type: 'list_type', msg: 'Input should be a valid list' },
}

const valueError = (message: string): Description => ({ type: 'value_error', msg: `Value error, ${message}` })

function tooSmall(issue: z.core.$ZodIssueTooSmall): Description {
  const limit = Number(issue.minimum)
  if (issue.origin === 'string')
    return {
      type: 'string_too_short',
      msg: `String should have at least ${limit} character${limit === 1 ? '' : 's'}`,
      ctx: { min_length: limit },
    }
  if (issue.origin === 'array') return valueError(issue.message)
  return issue.inclusive === false
    ? { type: 'greater_than', msg: `Input should be greater than ${limit}`, ctx: { gt: limit } }
    : {
        type: 'greater_than_equal',
        msg: `Input should be greater than or equal to ${limit}`,
        ctx: { ge: limit },
      }
}

function tooBig(issue: z.core.$ZodIssueTooBig): Description {
  const limit = Number(issue.maximum)
  if (issue.origin === 'string')
    return {
      type: 'string_too_long',
      msg: `String should have at most ${limit} character${limit === 1 ? '' : 's'}`,
      ctx: { max_length: limit },
    }
  if (issue.origin === 'array')
    return {
      type: 'too_long',
      msg: `List should have at most ${limit} items after validation`,
      ctx: { max_length: limit },
    }
  return issue.inclusive === false
    ? { type: 'less_than', msg: `Input should be less than ${limit}`, ctx: { lt: limit } }
    : { type: 'less_than_equal', msg: `Input should be less than or equal to ${limit}`, ctx: { le: limit } }
}

const list = (words: string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

const ECHO_LIMIT = 200

/** Shows what was sent, where that is short and plain. */
function echo(input: unknown): { input?: unknown } {
  if (typeof input === 'number' || typeof input === 'boolean' || input === null) return { input }
  return typeof input === 'string' && input.length <= ECHO_LIMIT ? { input } : {}
}
