import type { z } from 'zod'
import { isJsonField, type Form } from '../../../protocol/contract/form.ts'
import type { Route } from '../../../protocol/contract/route.ts'
import type { ValidationItem } from '../../../protocol/contract/errors.ts'
import { errorCodes } from '../../../protocol/model/error-codes.ts'
import { ApiError } from '../api-error.ts'
import { decodeJson } from './read-body.ts'
import type { ReceivedForm } from './read-form.ts'
import { itemsOf, missing, type Place } from './validation-items.ts'

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

/** Validates all parts, and reports everything that is wrong in any of them at once. */
export function validate(route: Route, raw: RawParts): ParsedParts {
  const items: ValidationItem[] = []
  const parsed: ParsedParts = {
    params:
      route.params &&
      check(
        'path',
        route.params,
        coerce(route.params, (name) => raw.params[name]),
        items,
      ),
    query:
      route.query &&
      check(
        'query',
        route.query,
        coerce(route.query, (name, isList) =>
          isList ? listOf(raw.query, name) : raw.query.getAll(name).at(-1),
        ),
        items,
      ),
    body: route.body && checkBody(route.body, raw.body, items),
  }
  refuseWhere(route, items)
  return parsed
}

/** Refuses a request of which something is wrong, with the document's own code where it names one (contract §2). */
function refuseWhere(route: Route, items: readonly ValidationItem[]): void {
  if (items.length === 0) return
  const codes = items.map(({ loc }) => {
    const inList = loc.findIndex((part) => typeof part === 'number')
    return route.badValues?.[loc.slice(0, inList < 0 ? undefined : inList).join('.')]
  })
  const code = codes.find((each) => each !== undefined) ?? 'validation_error'
  // Only a 422 lists what is wrong.
  const listed = errorCodes[code].status === 422 ? items : undefined
  throw new ApiError(code, undefined, undefined, listed)
}

/** Validates the text of a form, and reports with it what is wrong with its files. */
export function validateForm(
  route: Route,
  form: Form,
  { texts, items }: Pick<ReceivedForm, 'texts' | 'items'>,
): Record<string, unknown> {
  const isOwner = route.interface === 'owner'
  const values = coerce(form.fields, (name, isList) =>
    isList ? listOf(texts, name) : texts.getAll(name).at(-1),
  )
  for (const [name, value] of Object.entries(values))
    if (isJsonField(form.fields.shape[name])) values[name] = decodeJson(value as string, isOwner, [name])
  const found: ValidationItem[] = []
  const fields = check('body', form.fields, values, found)
  refuseWhere(route, [...found, ...items])
  return fields!
}

/** Whoever sends more that is wrong is told of the first of it: no answer is larger than what was asked. */
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
  for (const loc of nulsIn(result.data, [place]))
    items.push({ loc, msg: 'Value error, a NUL character is not text', type: 'value_error' })
  return result.data
}

/** Where in a value there is text with a NUL character, which PostgreSQL does not store. */
function nulsIn(value: unknown, loc: ValidationItem['loc']): ValidationItem['loc'][] {
  if (typeof value === 'string') return value.includes('\0') ? [loc] : []
  if (Array.isArray(value)) return value.flatMap((each, index) => nulsIn(each, [...loc, index]))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => nulsIn(each, [...loc, name]))
}

function checkBody(schema: z.ZodObject, body: RawParts['body'], items: ValidationItem[]) {
  if (body.present) return check('body', schema, body.value, items)
  items.push({ loc: ['body'], ...missing })
  return undefined
}

type Text = string | readonly string[] | undefined

/** A repeated query parameter; absent where it is not there at all. */
const listOf = (query: URLSearchParams, name: string): string[] | undefined =>
  query.has(name) ? query.getAll(name) : undefined

/**
 * Reads strings as what their fields are. An integer is a string of digits and nothing else (contract §1), a boolean one of
 * FastAPI's words; what is neither is left as it is, for the schema to refuse.
 */
function coerce(
  schema: z.ZodObject,
  textOf: (name: string, isList: boolean) => Text,
): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(schema.shape)) {
    const type = typeOf(field)
    const text = textOf(name, type.list)
    if (text === undefined) continue
    values[name] = typeof text === 'string' ? valueOf(type, text) : text.map((each) => valueOf(type, each))
  }
  return values
}

interface FieldType {
  list: boolean
  /** Kinds of values besides text that the field takes. */
  number: boolean
  boolean: boolean
}

function valueOf(type: FieldType, text: string): unknown {
  if (type.number && /^\d+$/.test(text)) return Number(text)
  if (type.boolean && text.toLowerCase() in booleans) return booleans[text.toLowerCase()]
  return text
}

const booleans: Readonly<Record<string, boolean>> = {
  true: true,
  1: true,
  on: true,
  yes: true,
  false: false,
  0: false,
  off: false,
  no: false,
}

function typeOf(field: z.core.$ZodType): FieldType {
  const { def } = field as z.ZodType
  if ('innerType' in def) return typeOf(def.innerType as z.core.$ZodType)
  if (def.type === 'array') return { ...typeOf((def as z.core.$ZodArrayDef).element), list: true }
  if (def.type === 'literal') {
    const { values } = def as z.core.$ZodLiteralDef<z.core.util.Literal>
    return { list: false, number: values.some((value) => typeof value === 'number'), boolean: false }
  }
  if (def.type !== 'union')
    return { list: false, number: def.type === 'number', boolean: def.type === 'boolean' }
  const options = (def as z.core.$ZodUnionDef).options.map(typeOf)
  return {
    list: false,
    number: options.some(({ number }) => number),
    boolean: options.some(({ boolean }) => boolean),
  }
}
