import { z } from 'zod'
import type { ValidationItem } from '../../../protocol/contract/errors.ts'
import { isJsonField, type Form } from '../../../protocol/contract/form.ts'
import type { Route } from '../../../protocol/contract/route.ts'
import { errorCodes, type ErrorCode } from '../../../protocol/model/error-codes.ts'
import { ApiError, sentenceOf } from '../api-error.ts'
import { nearestOf } from '../nearest.ts'
import { decodeJson } from './read-body.ts'
import { extra, itemsOf, missing, notUtf8, valueError, type Place } from './validation-items.ts'

/** The raw parts of a request: strings, and the parsed JSON body. */
interface RawParts {
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  body: { present: boolean; value: unknown }
}

export interface ParsedParts {
  params: Record<string, unknown> | undefined
  query: Record<string, unknown> | undefined
  body: Record<string, unknown> | undefined
}

/** Validates path, query and body. Throws one error that lists every problem. */
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
  if (!body && raw.body.present) items.push(...strayFields(raw.body.value))
  if (body && !raw.body.present) items.push({ loc: ['body'], ...missing })
  items.push(...strayNames(route, raw.query))
  if (items.length > 0)
    refuse(route, items, {
      query: [...raw.query.keys()],
      body: typeof raw.body.value === 'object' ? Object.keys(raw.body.value ?? {}) : [],
    })
  return parsed
}

/** Unknown names that an owner path ignores, because clients add them to every address. */
const IGNORED_NAMES = new Set(['hub_id', 'hub'])

/**
 * Refuses unknown names in the query of an owner path, and parameters with two different values. An ignored filter
 * would return rows that the caller did not ask for. Other paths ignore both (contract §1, unknown names).
 */
function strayNames({ interface: part, query }: Route, sent: URLSearchParams): ValidationItem[] {
  if (part !== 'owner' || sent.size === 0) return []
  const types = new Map((query ? fieldsOf(query) : []).map((field) => [field.name, field.types]))
  return [...new Set(sent.keys())].slice(0, MOST_ITEMS).flatMap((name): ValidationItem[] => {
    const loc = ['query', name]
    const known = types.get(name)
    if (known === undefined) return IGNORED_NAMES.has(name) || name.startsWith('_') ? [] : [{ loc, ...extra }]
    if (known.has('array') || new Set(sent.getAll(name)).size === 1) return []
    return [{ loc, ...valueError('must be sent once; it was sent with different values') }]
  })
}

/** Refuses each field of the body if the route takes no body, because the field would have no effect. */
function strayFields(value: unknown): ValidationItem[] {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject) return [{ loc: ['body'], ...valueError('this endpoint takes no body') }]
  return Object.keys(value)
    .slice(0, MOST_ITEMS)
    .map((name) => ({ loc: ['body', name], ...extra }))
}

/** A list parameter of axios, jQuery and PHP: `name[]=a&name[]=b`, `name[0]=a`. */
export const LIST_NAME = /\[\d*\]$/

/** Reads a query. `name[]=a&name[]=b` is a repeated `name`. */
export function readQuery(search: string): URLSearchParams {
  const query = new URLSearchParams(search)
  if (!/\[|%5B/i.test(search)) return query
  return new URLSearchParams(
    [...query].map(([name, value]): [string, string] => [name.replace(LIST_NAME, ''), value]),
  )
}

const REPLACEMENT = /%EF%BF%BD/gi

/** Refuses a query with percent-encoded bytes that are not UTF-8. They would be read as U+FFFD, which was not sent. */
export function requireUtf8(search: string): void {
  if (!search.includes('%')) return
  const isReplaced =
    new URLSearchParams(search.replaceAll(REPLACEMENT, '')).toString().search(REPLACEMENT) >= 0
  if (isReplaced) throw ApiError.invalid({ loc: ['query'], ...notUtf8 })
}

/** Validates the text of a form. Throws one error with its problems and those of the form's files. */
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

/** Reads the header `Idempotency-Key`. Throws `validation_error` for an invalid key. */
export function idempotencyKeyOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const result = IdempotencyKey.safeParse(header)
  if (result.success) return header
  const issues = result.error.issues.map((issue) => ({ ...issue, path: ['Idempotency-Key'] }))
  throw ApiError.invalid(...issues.flatMap((issue) => itemsOf('header', issue)))
}

/** Refuses an invalid request, with the document's own code if it names one. */
function refuse(route: Route, items: readonly ValidationItem[], sent: SentNames): never {
  const codeOf = ({ loc, type }: ValidationItem): ErrorCode | undefined => {
    const inList = loc.findIndex((part) => typeof part === 'number')
    const code = route.badValues?.[loc.slice(0, inList < 0 ? undefined : inList).join('.')]
    // A missing value is not malformed.
    return type === 'missing' && code !== undefined && errorCodes[code].status !== 422 ? undefined : code
  }
  const named = items.find((item) => codeOf(item) !== undefined)
  const code = (named && codeOf(named)) ?? 'validation_error'
  const meant = meantBy(route, named ?? items[0]!, sent)
  // A specific code states its rule in its own message, which does not cover the upper bound.
  const own =
    named === undefined
      ? undefined
      : named.type === 'less_than_equal'
        ? sentenceOf([named])
        : errorCodes[code].message
  // Only a 422 lists the problems.
  throw new ApiError(
    code,
    [own ?? sentenceOf(items), meant].filter(Boolean).join(' '),
    undefined,
    errorCodes[code].status === 422 ? items : undefined,
  )
}

/** The sent names, for messages about unknown names. */
interface SentNames {
  query: readonly string[]
  body: readonly string[]
}

/** Explains an unknown or missing name by the name that the sender probably meant. */
function meantBy(route: Route, { loc, type }: ValidationItem, sent: SentNames): string | undefined {
  const [place, ...path] = loc
  const name = path.at(-1)
  if ((place !== 'query' && place !== 'body') || typeof name !== 'string') return undefined
  const known = namesAt(schemaOf(route, place), path.slice(0, -1))
  if (place === 'body' && path.length === 1) known.push(...Object.keys(route.form?.files ?? {}))
  const elsewhere = place === 'query' ? 'body' : 'query'
  const isTop = path.length === 1
  if (type === 'extra_forbidden') {
    const meant = nearestOf(name, known)
    if (meant !== undefined) return `Did you mean ${meant}?`
    if (isTop && namesAt(schemaOf(route, elsewhere), []).includes(name))
      return `It belongs into the ${elsewhere}.`
    if (known.length > 0) return `Known here: ${known.join(', ')}.`
    return isTop ? `The ${place} takes no fields here.` : undefined
  }
  if (type !== 'missing' || !isTop) return undefined
  if (sent[elsewhere].includes(name)) return `It was sent in the ${elsewhere}, and belongs into the ${place}.`
  const unknownNames = sent[place].slice(0, MOST_ITEMS).filter((each) => !known.includes(each))
  const written = nearestOf(name, unknownNames)
  return written && `What was sent is called ${written.slice(0, ECHO_NAME)}: did you mean ${name}?`
}

const schemaOf = (route: Route, place: 'query' | 'body'): z.ZodObject | undefined =>
  place === 'query' ? route.query : (route.body ?? route.form?.fields)

/** The field names of the object at a path within a schema. Empty if there is no object. */
function namesAt(schema: z.core.$ZodType | undefined, path: ValidationItem['loc']): string[] {
  if (schema === undefined) return []
  const { def } = schema as z.ZodType
  if ('innerType' in def) return namesAt(def.innerType as z.core.$ZodType, path)
  const [step, ...rest] = path
  if (def.type === 'object') {
    const { shape } = schema as z.ZodObject
    return step === undefined ? Object.keys(shape) : namesAt(shape[step], rest)
  }
  return def.type === 'array' ? namesAt((def as z.core.$ZodArrayDef).element, rest) : []
}

/** Maximum length of a caller's name in a message. */
const ECHO_NAME = 40

/** Maximum number of problems in an error, so that no answer is much larger than its request. */
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
    keepFirst(items)
    return undefined
  }
  items.push(...noTextIn(result.data, [place]))
  return result.data
}

/** Removes repeated items: a field's schema and a rule about several fields may find the same problem. */
function keepFirst(items: ValidationItem[]): void {
  const seen = new Set<string>()
  const first = items.filter(({ loc, type, msg }) => {
    const text = JSON.stringify([loc, type, msg])
    return !seen.has(text) && seen.add(text)
  })
  items.splice(0, items.length, ...first)
}

/** Half of a UTF-16 surrogate pair. No encoding can carry it: it would be stored as another character. */
const LONE_SURROGATE = /\p{Surrogate}/u

/** Finds text that cannot be stored unchanged. PostgreSQL does not store NUL characters. */
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

/** A list gets every value of a repeated parameter, or is absent. Any other field gets the last value. */
const textsOf =
  (given: URLSearchParams): Texts =>
  (name, isList) => {
    const all = given.getAll(name)
    return isList && all.length > 0 ? all : all.at(-1)
  }

/**
 * Converts strings to the types of their fields. An integer consists only of digits, a boolean is one of FastAPI's
 * words. Any other text stays unchanged, and the schema refuses it.
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

/** The fields of a schema, cached because schemas are few and requests are many. */
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

/** The accepted types of a field, by zod's names. A list has `array` and the types of its elements. */
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
