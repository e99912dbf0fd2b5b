import { mountsOf, type Route } from '../../../protocol/contract/route.ts'
import type { ErrorCode } from '../../../protocol/model/error-codes.ts'
import type { Scope } from '../../../protocol/model/scopes.ts'
import type { World } from './world.ts'

/**
 * The caller: the owner of hub 1 with every scope, a key of the same owner only for hub 1, an owner of other
 * hubs, an operator, a customer by name, nobody, or a credential as in its header.
 */
export type Caller =
  | 'owner'
  | 'limited'
  | 'other-owner'
  | 'operator'
  | 'nobody'
  | { customer: string }
  | { headers: Readonly<Record<string, string>> }

export type Value = string | number | boolean

/** A request of a route. Absent parts are not sent. */
export interface Call {
  as: Caller
  params?: Readonly<Record<string, Value>>
  query?: Readonly<Record<string, Value | readonly Value[]>>
  body?: Readonly<Record<string, unknown>>
  /** The fields of a multipart form. */
  form?: Readonly<Record<string, string | File | readonly File[]>>
  /** The raw body, instead of `body`. */
  text?: string
  headers?: Readonly<Record<string, string>>
}

/** How one route is brought to each of its answers. */
export interface RouteCases {
  /** Prepares the world so that the call succeeds. */
  success: (world: World) => Promise<Call>
  /** Prepares the world for each documented error that does not follow from the route's properties. */
  errors?: Partial<Record<ErrorCode, (world: World) => Promise<Call>>>
  /** Scopes that the call gives to somebody, which its key needs, too. */
  gives?: readonly Scope[]
  /** Errors that need a failing part outside the walk, each with the file of its test. */
  elsewhere?: Partial<Record<ErrorCode, string>>
}

/** The address of a call, at one of the route's mounts. */
export function addressOf(route: Route, call: Call, mount = mountsOf(route)[0]!): string {
  const path = mount.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(call.params?.[name] ?? '')
    // The path of a file contains slashes: a file has one address.
    const parts = route.openEnded ? value.split('/') : [value]
    return parts.map(encodeURIComponent).join('/')
  })
  const query = new URLSearchParams(
    Object.entries(call.query ?? {}).flatMap(([name, value]) =>
      [value].flat().map((one): [string, string] => [name, String(one)]),
    ),
  ).toString()
  return query === '' ? path : `${path}?${query}`
}
