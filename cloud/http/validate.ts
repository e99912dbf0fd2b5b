import type { z } from 'zod'
import type { Route } from '../../protocol/contract/route.ts'
import type { ValidationItem } from '../../protocol/contract/error-body.ts'
import { ApiError } from './api-error.ts'
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
        coerce(route.query, (name) => raw.query.getAll(name).at(-1)),
        items,
      ),
    body: route.body && checkBody(route.body, raw.body, items),
  }
  if (items.length > 0) throw new ApiError(codeOf(route, items), undefined, undefined, items)
  return parsed
}

/** The document's own code for a bad value, where it names one (contract §2). */
function codeOf(route: Route, items: readonly ValidationItem[]) {
  const codes = items.map((item) => route.badValues?.[`${item.loc[0]}.${item.loc[1]}`])
  return codes.find((code) => code !== undefined) ?? 'validation_error'
}

function check(
  place: Place,
  schema: z.ZodObject,
  value: unknown,
  items: ValidationItem[],
): Record<string, unknown> | undefined {
  const result = schema.safeParse(value, { reportInput: true })
  if (!result.success) {
    items.push(...result.error.issues.flatMap((issue) => itemsOf(place, issue)))
    return undefined
  }
  for (const [name, field] of Object.entries(result.data))
    if (typeof field === 'string' && field.includes('\0'))
      items.push({ loc: [place, name], msg: 'Value error, a NUL character is not text', type: 'value_error' })
  return result.data
}

function checkBody(schema: z.ZodObject, body: RawParts['body'], items: ValidationItem[]) {
  if (body.present) return check('body', schema, body.value, items)
  items.push({ loc: ['body'], ...missing })
  return undefined
}

/**
 * Reads strings as what their fields are. An integer is a string of digits and nothing else (contract §1); what is not is
 * left as it is, for the schema to refuse.
 */
function coerce(
  schema: z.ZodObject,
  valueOf: (name: string) => string | undefined,
): Record<string, string | number> {
  const values: Record<string, string | number> = {}
  for (const [name, field] of Object.entries(schema.shape)) {
    const value = valueOf(name)
    if (value === undefined) continue
    values[name] = isNumeric(field) && /^\d+$/.test(value) ? Number(value) : value
  }
  return values
}

function isNumeric(field: z.core.$ZodType): boolean {
  const { def } = field as z.ZodType
  return 'innerType' in def ? isNumeric(def.innerType as z.core.$ZodType) : def.type === 'number'
}
