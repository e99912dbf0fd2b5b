import { mountsOf, type Route } from '../../../protocol/contract/route.ts'
import type { ErrorCode } from '../../../protocol/model/error-codes.ts'
import type { World } from './world.ts'

/**
 * Who calls: the owner of hub 1 with every scope, a key of the same owner for hub 1 alone, an owner of other hubs, an
 * operator, a customer by name, nobody, or a credential as it stands in its header.
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

/** A request of a route. What is absent is not sent. */
export interface Call {
  as: Caller
  params?: Readonly<Record<string, Value>>
  query?: Readonly<Record<string, Value | readonly Value[]>>
  body?: Readonly<Record<string, unknown>>
  /** The fields of a multipart form. */
  form?: Readonly<Record<string, string | File | readonly File[]>>
  /** The body as it is, instead of `body`. */
  text?: string
  headers?: Readonly<Record<string, string>>
}

/** How one route is brought to each of its answers. */
export interface RouteCases {
  /** Makes the world such that the call succeeds. */
  success: (world: World) => Promise<Call>
  /** The same for each error that the route documents beyond those which follow from what it is. */
  errors?: Partial<Record<ErrorCode, (world: World) => Promise<Call>>>
  /** Errors that need a part to fail which the walk has not got, by the test that shows them. */
  elsewhere?: Partial<Record<ErrorCode, string>>
}

/** The address of a call, at one of the route's mounts. */
export function addressOf(route: Route, call: Call, mount = mountsOf(route)[0]!): string {
  const path = mount.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(call.params?.[name] ?? '')
    // The path of a file keeps its slashes: a file has one address.
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
