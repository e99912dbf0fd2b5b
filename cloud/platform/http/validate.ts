import { z } from 'zod'
import type { ValidationItem } from '../../../protocol/contract/errors.ts'
import { isJsonField, type Form } from '../../../protocol/contract/form.ts'
import type { Route } from '../../../protocol/contract/route.ts'
import { errorCodes, type ErrorCode } from '../../../protocol/model/error-codes.ts'
import { ApiError, sentenceOf } from '../api-error.ts'
import { nearestOf } from '../nearest.ts'
import { decodeJson } from './read-body.ts'

/** A request's parts as they came: strings, and the JSON body parsed. */
export interface RawParts {
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  body: { present: boolean; value: unknown }
}

export interface ParsedParts {
  params: Record<string, unknown> | undefined
  query: Record<string, unknown> | undefined
  body: Record<string, unknown> | undefined
}

/** Validates path, query and body. Throws one error that lists what is wrong in any of them. */
export function validate(route: Route, raw: RawParts): ParsedParts {
  const items: ValidationItem[] = []
  const { params, query, body } = route
  const parsed: ParsedParts = {
    params:
      params &&
      check(
        'path',
        params,
        coerce(params, (name) => raw.params[name]),
        items,
      ),
    query: query && check('query', query, coerce(query, textsOf(raw.query)), items),
    body: body && raw.body.present ? check('body', body, raw.body.value, items) : undefined,
  }
  if (body && !raw.body.present) items.push({ loc: ['body'], ...missing })
  if (items.length > 0)
    refuse(route, items, {
      query: [...raw.query.keys()],
      body: typeof raw.body.value === 'object' ? Object.keys(raw.body.value ?? {}) : [],
    })
  return parsed
}

const REPLACEMENT = /%EF%BF%BD/gi

/** Refuses a query whose percent-encoded bytes are not UTF-8: they are read as U+FFFD, which was not sent. */
export function requireUtf8(search: string): void {
  if (!search.includes('%')) return
  const isReplaced =
    new URLSearchParams(search.replaceAll(REPLACEMENT, '')).toString().search(REPLACEMENT) >= 0
  if (isReplaced) throw ApiError.invalid({ loc: ['query'], ...notUtf8 })
}

/** Validates the text of a form. Throws one error that lists this and what is wrong with the form's files. */
export function validateForm(
  route: Route,
  form: Form,
  { texts, items }: { texts: URLSearchParams; items: readonly ValidationItem[] },
): Record<string, unknown> {
  const values = coerce(form.fields, textsOf(texts))
  for (const [name, value] of Object.entries(values))
    if (isJsonField(form.fields.shape[name]))
      values[name] = decodeJson(value as string, route.interface === 'owner', [name])
  const found: ValidationItem[] = []
  const fields = check('body', form.fields, values, found)
  const wrong = [...found, ...items]
  if (wrong.length > 0) refuse(route, wrong, { query: [], body: [...texts.keys()] })
  return fields!
}

/** The text of an `Idempotency-Key`. */
export const IdempotencyKey = z.string().min(1).max(255)

/** Reads the header `Idempotency-Key`. Throws `validation_error` for a text that cannot be a key. */
export function idempotencyKeyOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const result = IdempotencyKey.safeParse(header)
  if (result.success) return header
  const issues = result.error.issues.map((issue) => ({ ...issue, path: ['Idempotency-Key'] }))
  throw ApiError.invalid(...issues.flatMap((issue) => itemsOf('header', issue)))
}

/** Refuses a request in which something is wrong, with the document's own code where it names one. */
function refuse(route: Route, items: readonly ValidationItem[], sent: SentNames): never {
  const codeOf = ({ loc, type }: ValidationItem): ErrorCode | undefined => {
    const inList = loc.findIndex((part) => typeof part === 'number')
    const code = route.badValues?.[loc.slice(0, inList < 0 ? undefined : inList).join('.')]
    // What is not there is not malformed.
    return type === 'missing' && code !== undefined && errorCodes[code].status !== 422 ? undefined : code
  }
  const named = items.find((item) => codeOf(item) !== undefined)
  const code = (named && codeOf(named)) ?? 'validation_error'
  const meant = meantBy(route, named ?? items[0]!, sent)
  // A code of its own says the rule in its own sentence, of which the upper bound is no part.
  const own =
    named === undefined
      ? undefined
      : named.type === 'less_than_equal'
        ? sentenceOf([named])
        : errorCodes[code].message
  // Only a 422 lists what is wrong.
  throw new ApiError(
    code,
    [own ?? sentenceOf(items), meant].filter(Boolean).join(' '),
    undefined,
    errorCodes[code].status === 422 ? items : undefined,
  )
}

/** The names of what was sent, to tell what was meant by one that nobody knows. */
interface SentNames {
  query: readonly string[]
  body: readonly string[]
}

/** What whoever left a field out, or sent one too many, probably meant: `hub` for `hub_id`, or another place. */
function meantBy(route: Route, { loc, type }: ValidationItem, sent: SentNames): string | undefined {
  const [place, name] = loc
  if ((place !== 'query' && place !== 'body') || typeof name !== 'string' || loc.length > 2) return undefined
  const known = Object.keys(
    (place === 'query' ? route.query : (route.body ?? route.form?.fields))?.shape ?? {},
  )
  if (type === 'extra_forbidden') {
    const meant = nearestOf(name, known)
    return meant && `Did you mean ${meant}?`
  }
  if (type !== 'missing') return undefined
  const elsewhere = place === 'query' ? 'body' : 'query'
  if (sent[elsewhere].includes(name)) return `It was sent in the ${elsewhere}, and belongs into the ${place}.`
  const strangers = sent[place].filter((each) => !known.includes(each))
  const written = nearestOf(name, strangers)
  return written && `What was sent is called ${written.slice(0, ECHO_NAME)}: did you mean ${name}?`
}

/** So much of a stranger's name is repeated. */
const ECHO_NAME = 40

/** An error reports at most this many problems, so that no answer is much larger than its request. */
const MOST_ITEMS = 100

function check(
  place: Place,
  schema: z.ZodObject,
  value: unknown,
  items: ValidationItem[],
): Record<string, unknown> | undefined {
  const result = schema.safeParse(value, { reportInput: true })
  if (!result.success) {
    for (const issue of result.error.issues)
      items.push(...itemsOf(place, issue).slice(0, Math.max(0, MOST_ITEMS - items.length)))
    return undefined
  }
  items.push(...noTextIn(result.data, [place]))
  return result.data
}

/** Half of a pair of UTF-16, which no encoding can carry: it would be stored as another character. */
const LONE_SURROGATE = /\p{Surrogate}/u

/** Where a value contains text that cannot be stored as it is. PostgreSQL does not store NUL characters. */
function noTextIn(value: unknown, loc: ValidationItem['loc']): ValidationItem[] {
  if (typeof value === 'string') {
    if (value.includes('\0')) return [{ loc, ...valueError('a NUL character is not text') }]
    return LONE_SURROGATE.test(value) ? [{ loc, ...valueError('half a surrogate pair is not text') }] : []
  }
  if (Array.isArray(value)) return value.flatMap((each, index) => noTextIn(each, [...loc, index]))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => noTextIn(each, [...loc, name]))
}

type Texts = (name: string, isList: boolean) => string | readonly string[] | undefined

/** A list is every value of a repeated parameter, or absent; anything else is its last value. */
const textsOf =
  (given: URLSearchParams): Texts =>
  (name, isList) => {
    const all = given.getAll(name)
    return isList && all.length > 0 ? all : all.at(-1)
  }

/**
 * Reads strings as the types of their fields. An integer is a string of digits and nothing else, a boolean one
 * of FastAPI's words; any other text is left as it is, for the schema to refuse.
 */
function coerce(schema: z.ZodObject, textOf: Texts): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const { name, types } of fieldsOf(schema)) {
    const text = textOf(name, types.has('array'))
    if (text === undefined) continue
    values[name] = typeof text === 'string' ? valueOf(types, text) : text.map((each) => valueOf(types, each))
  }
  return values
}

interface Field {
  name: string
  types: ReadonlySet<string>
}

const known = new WeakMap<z.ZodObject, readonly Field[]>()

/** The fields of a schema; looked up once, as schemas are few and requests are many. */
function fieldsOf(schema: z.ZodObject): readonly Field[] {
  const before = known.get(schema)
  if (before) return before
  const fields = Object.entries(schema.shape).map(([name, field]) => ({ name, types: typesOf(field) }))
  known.set(schema, fields)
  return fields
}

function valueOf(types: ReadonlySet<string>, text: string): unknown {
  if (types.has('number') && /^\d+$/.test(text)) return Number(text)
  return (types.has('boolean') ? booleans.get(text.toLowerCase()) : undefined) ?? text
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ...['true', '1', 'on', 'yes'].map((word) => [word, true] as const),
  ...['false', '0', 'off', 'no'].map((word) => [word, false] as const),
])

/** The types of values that a field takes, by zod's names; of a list, `array` and those of its elements. */
function typesOf(field: z.core.$ZodType): ReadonlySet<string> {
  const { def } = field as z.ZodType
  if ('innerType' in def) return typesOf(def.innerType as z.core.$ZodType)
  if (def.type === 'array') return new Set(['array', ...typesOf((def as z.core.$ZodArrayDef).element)])
  if (def.type === 'union')
    return new Set((def as z.core.$ZodUnionDef).options.flatMap((option) => [...typesOf(option)]))
  if (def.type !== 'literal') return new Set([def.type])
  const { values } = def as z.core.$ZodLiteralDef<z.core.util.Literal>
  return new Set(values.map((value) => typeof value))
}

type Place = 'query' | 'path' | 'body' | 'header'
type Issue = z.core.$ZodIssue
type Description = Pick<ValidationItem, 'msg' | 'type' | 'ctx'>

/** A zod issue in the words of FastAPI's 422. */
function itemsOf(place: Place, issue: Issue): ValidationItem[] {
  const loc = [place, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))]
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      loc: [...loc, key],
      msg: 'Extra inputs are not permitted',
      type: 'extra_forbidden',
    }))
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
      return {
        type: 'string_pattern_mismatch',
        msg: issue.pattern === undefined ? issue.message : `String should match pattern '${issue.pattern}'`,
        ...(issue.pattern !== undefined && { ctx: { pattern: issue.pattern } }),
      }
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

/** `a, b or c`. */
const alternatives = (words: string[]): string =>
  [...(words.length > 1 ? [words.slice(0, -1).join(', ')] : []), words.at(-1)].join(' or ')

const valueError = (message: string): Description => ({ type: 'value_error', msg: `Value error, ${message}` })
export const notUtf8 = valueError('text must be UTF-8')

function tooSmall({ origin, minimum, inclusive, message }: z.core.$ZodIssueTooSmall): Description {
  const limit = Number(minimum)
  const characters = limit === 1 ? 'character' : 'characters'
  if (origin === 'string')
    return bound(
      'string_too_short',
      'min_length',
      limit,
      `String should have at least ${limit} ${characters}`,
    )
  if (origin === 'array') return valueError(message)
  return inclusive === false
    ? bound('greater_than', 'gt', limit, `Input should be greater than ${limit}`)
    : bound('greater_than_equal', 'ge', limit, `Input should be greater than or equal to ${limit}`)
}

function tooBig({ origin, maximum, inclusive }: z.core.$ZodIssueTooBig): Description {
  const limit = Number(maximum)
  if (origin === 'string')
    return bound('string_too_long', 'max_length', limit, `String should have at most ${limit} characters`)
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
    `List should have at most ${limit} item${limit === 1 ? '' : 's'} after validation`,
  )

const bound = (type: Description['type'], name: string, limit: number, msg: string): Description => ({
  type,
  msg,
  ctx: { [name]: limit },
})

const ECHO_LIMIT = 200

/** Shows what was sent, where that is short and plain. */
function echo(input: unknown): { input?: unknown } {
  if (typeof input === 'number' || typeof input === 'boolean' || input === null) return { input }
  return typeof input === 'string' && input.length <= ECHO_LIMIT ? { input } : {}
}
