import { z } from 'zod'
import { refusesFields, type Route } from '../../../protocol/contract/route.ts'
import type { ErrorCode } from '../../../protocol/model/error-codes.ts'
import type { Call } from './call.ts'

/** A call with one bad value, and its expected refusal. */
export interface BadCall {
  name: string
  call: Call
  code: ErrorCode
  /** The item that `detail` must contain. */
  loc: (string | number)[]
  type: string
}

type Place = 'path' | 'query' | 'body'
const partOf = { path: 'params', query: 'query', body: 'body' } as const

interface Bounds {
  type?: string
  enum?: unknown
  const?: unknown
  anyOf?: Bounds[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  maxLength?: number
  minLength?: number
}

/**
 * Calls with each bad value of each field of a valid call, according to the schemas. Each must be 422 with
 * its own message.
 */
export function badCalls(route: Route, call: Call): BadCall[] {
  const schemas: [Place, z.ZodObject | undefined][] = [
    ['path', route.params],
    ['query', route.query],
    ['body', route.body],
  ]
  return [
    ...schemas.flatMap(([place, schema]) =>
      Object.entries(schema?.shape ?? {}).flatMap(([name, field]) =>
        ofField(route, call, place, name, field as z.ZodType),
      ),
    ),
    ...extraKey(route, call),
    ...extraName(route, call),
  ]
}

function ofField(route: Route, call: Call, place: Place, name: string, field: z.ZodType): BadCall[] {
  const part = partOf[place]
  const code = route.badValues?.[`${place}.${name}`] ?? 'validation_error'
  const make = (label: string, value: unknown, type: string): BadCall => {
    const { [name]: _, ...rest } = call[part] ?? {}
    const changed = value === undefined ? rest : { ...rest, [name]: value }
    return {
      name: `${place}.${name} ${label}`,
      call: { ...call, [part]: changed },
      code,
      loc: [place, name],
      type,
    }
  }
  const bounds = plainBounds(z.toJSONSchema(field, { io: 'input', unrepresentable: 'any' }) as Bounds)
  const isText = place !== 'body'
  return [
    ...(place !== 'path' && !field.safeParse(undefined).success
      ? [make('missing', undefined, 'missing')]
      : []),
    ...(bounds.type === 'integer' ? ofInteger(bounds, isText, place, make) : []),
    ...(bounds.type === 'string' ? ofString(bounds, isText, make) : []),
    ...(bounds.type === 'boolean' ? [make('no boolean', 'perhaps', 'bool_parsing')] : []),
    ...(bounds.enum !== undefined && isText ? [make('no member', 'nonsense', 'literal_error')] : []),
  ]
}

type Make = (label: string, value: unknown, type: string) => BadCall

function ofInteger(bounds: Bounds, isText: boolean, place: Place, make: Make): BadCall[] {
  const { minimum, maximum, exclusiveMinimum } = bounds
  const bad = isText ? [...(place === 'path' ? [] : ['']), '1.5', '1e3', 'x'] : ['x', 1.5, true]
  return [
    ...bad.map((value) => make(`= ${JSON.stringify(value)}`, value, 'int_parsing')),
    ...(minimum !== undefined && minimum > 0 ? [make('too small', minimum - 1, 'greater_than_equal')] : []),
    ...(minimum === 0 && !isText ? [make('too small', -1, 'greater_than_equal')] : []),
    ...(exclusiveMinimum !== undefined && exclusiveMinimum >= 0
      ? [make('too small', exclusiveMinimum, 'greater_than')]
      : []),
    ...(maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER
      ? [make('too large', maximum + 1, 'less_than_equal')]
      : []),
  ]
}

function ofString(bounds: Bounds, isText: boolean, make: Make): BadCall[] {
  if (bounds.enum !== undefined || bounds.const !== undefined) return []
  return [
    ...(isText ? [] : [make('no string', 5, 'string_type')]),
    ...(bounds.maxLength !== undefined
      ? [make('too long', 'x'.repeat(bounds.maxLength + 1), 'string_too_long')]
      : []),
  ]
}

/** The schema of an optional or nullable field without its wrapper. */
function plainBounds(schema: Bounds): Bounds {
  const options = schema.anyOf?.filter(({ type }) => type !== 'null')
  return options?.length === 1 ? plainBounds(options[0]!) : schema
}

/** An unknown field. Requests with a body, and requests that take none, refuse it. */
function extraKey(route: Route, call: Call): BadCall[] {
  if (route.ignoresUnknown || (!route.body && !refusesFields(route))) return []
  return [
    {
      name: 'body with an unknown key',
      call: { ...call, body: { ...call.body, walk_unknown: 1 } },
      code: 'validation_error',
      loc: ['body', 'walk_unknown'],
      type: 'extra_forbidden',
    },
  ]
}

/** An unknown name in the query. Owner paths refuse it. */
function extraName(route: Route, call: Call): BadCall[] {
  if (route.interface !== 'owner') return []
  return [
    {
      name: 'query with an unknown name',
      call: { ...call, query: { ...call.query, walk_unknown: 1 } },
      code: 'validation_error',
      loc: ['query', 'walk_unknown'],
      type: 'extra_forbidden',
    },
  ]
}
