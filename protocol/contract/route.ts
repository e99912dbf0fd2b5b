import type { z } from 'zod'
import type { ErrorCode } from '../model/error-codes.ts'
import type { Form } from './form.ts'
import type { Scope } from '../model/scopes.ts'

/**
 * A route as data. The router, credential and scope checks, rate limits, validation, the OpenAPI document and the contract
 * tests all come from this. Routes live in tables keyed by their id (`owner.hubs.list`).
 */
export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** As the document spells it, trailing slash included; `{name}` is a path parameter. Consumer paths without prefix. */
  path: string
  interface: Interface
  auth: Auth
  rate: RateClass
  /** A second, smaller allowance that each call counts against too. */
  alsoRate?: RateClass
  /** Creates the user of an identity. For an anonymous one each call also takes from the allowance of class `guest`. */
  makesGuests?: true
  /** Field schemas are of parsed values: integers as `z.int()`. The HTTP layer reads them out of strings. */
  params?: z.ZodObject
  query?: z.ZodObject
  /**
   * The JSON body. Every object in it is strict (`z.strictObject`): a misspelt field must not change the effect of a
   * call.
   */
  body?: z.ZodObject
  /** Unknown fields of the body are ignored. */
  ignoresUnknown?: true
  /** A request without a body counts as one with `{}`. */
  bodyOptional?: true
  /** A multipart form in place of a JSON body. It is read last, after access to the hub has been checked. */
  form?: Form
  /** The handler gets the unparsed body: a webhook's signature covers its bytes. */
  rawBody?: true
  /** Headers for the signature. The request must have at least one of them before the body is read. */
  signedBy?: readonly string[]
  /** Schema of the success body. */
  response: z.ZodType
  /** Schema of each message of an event stream. */
  message?: z.ZodType
  /** Success status (default 200). A 204 has no body: its `response` is `z.undefined()`. */
  status?: number
  /** Another success status, with the same body. */
  alsoStatus?: number
  /**
   * Media type of the success body; JSON by default. `application/octet-stream` is a `ReadableStream`, and the handler names
   * its type; `text/event-stream` is a `ReadableStream` too.
   */
  produces?: 'text/html' | 'application/octet-stream' | 'application/x-pem-file' | 'text/event-stream'
  /** Media type that the caller can request with `Accept` instead of JSON. */
  alsoProduces?: 'text/csv' | 'text/html'
  /**
   * Success carries an `ETag`; a caller who has the same answer gets 304. `public`: all callers get the same answer.
   */
  validated?: 'public' | 'private'
  /** The last parameter of the path takes the rest of the path, slashes included. */
  openEnded?: true
  /** Query or path parameter with the hub that an `api` credential needs access to. */
  hub?: string
  /** A former owner of the hub may read here the records of that owner's time. */
  formerOwners?: true
  /** Error codes in addition to those that follow from the other fields. */
  errors?: readonly ErrorCode[]
  /**
   * The specific code for a bad value, if the document names one: `body.quantity` → `invalid_quantity`,
   * `body.formData.hubId` → `hub_id_required`. Without places in lists.
   */
  badValues?: Readonly<Record<string, ErrorCode>>
  /**
   * Makes the body for a request that fails validation, if the route answers it with the success status (O §4.6, bins over
   * SSH). It gets the unparsed query and the problem as a sentence.
   */
  invalidBody?: (query: Readonly<Record<string, string>>, message: string) => unknown
  /**
   * Gives a credential to every caller. `Host` must be an address or a name of the service, and `Origin` the same or one of
   * `CORS_ORIGINS`: a foreign page could call it by DNS rebinding otherwise.
   */
  trustsCaller?: true
  /** Accepts `Idempotency-Key`. */
  idempotent?: true
  tag: string
  summary: string
  description?: string
  /** Dates (`YYYY-MM-DD`). */
  deprecated?: { since: string; sunset: string }
  /** Headers of success in addition to those that follow from the other fields (`headers.ts`). */
  headers?: readonly ('X-Total-Count' | 'Link' | 'X-Incomplete')[]
  examples?: { body?: unknown; response?: unknown }
}

/** Owner paths stand below `/api/v1`, root paths at `/`, consumer paths at both. */
export type Interface = 'owner' | 'consumer' | 'diag' | 'root'

export type Auth =
  /** An API key, or an identity token with a role; one scope (O §5). */
  | {
      kind: 'api'
      scope: Scope
      /** A scope with which the answer has more (`OwnerCredential.furtherHubs`). */
      further?: Scope
      /** `further` suffices alone. */
      either?: true
    }
  /** An identity token of an existing user, who is the one named by a `user_id` in the path. */
  | { kind: 'user' }
  /** Any identity token; its user may not exist yet. */
  | { kind: 'identity' }
  /** An identity token or nothing. */
  | { kind: 'optional-identity' }
  /** An API key with the scope, or an identity token with role `admin`. */
  | { kind: 'diag'; scope: Scope }
  | { kind: 'none' }

/** Requests per minute, and the caller that they count for. */
export interface Rate {
  requests: number
  by: 'credential' | 'address'
  /** The routes of this class take from one allowance with this name, not from one each. */
  shared?: string
}

/** The rates by class (O §8). */
export const rateClasses = {
  standard: { requests: 360, by: 'credential' },
  low: { requests: 90, by: 'credential' },
  /** Payments, and invitations, which are mailed to any address. */
  payment: { requests: 20, by: 'credential' },
  /** Pictures of customers: each one is taken apart (`media/worker.ts`). */
  picture: { requests: 10, by: 'credential' },
  /** Unauthenticated pages; by address. */
  open: { requests: 360, by: 'address' },
  /** Look-ups that could be used to enumerate, with a credential or without; by address. */
  lookup: { requests: 10, by: 'address' },
  /**
   * Whole releases; by address. Fifty hubs of one network have them within five minutes, because a refused hub asks again after a
   * minute.
   */
  download: { requests: 10, by: 'address' },
  /** New guests of a network. A limit per user does not bind callers who can become new users at any time. */
  guest: { requests: 20, by: 'address', shared: 'guests' },
  /**
   * Signed calls of the card processor, signed addresses of files, and tokens of the demo's issuer. Their answers carry no rate
   * headers: these tell a caller how much of an allowance is left, and there is none that could run out.
   */
  unlimited: { requests: Infinity, by: 'address' },
} as const satisfies Record<string, Rate>
export type RateClass = keyof typeof rateClasses
export type RateClasses = Readonly<Record<RateClass, Rate>>

/** The allowances that a call of a route uses. Its answers report the first one, which is the smallest. */
export const ratesOf = ({
  rate,
  alsoRate,
}: Pick<Route, 'rate' | 'alsoRate'>): readonly [RateClass, ...RateClass[]] =>
  alsoRate === undefined ? [rate] : [alsoRate, rate]

/** A route in its table: method and path are one text. Fields that the whole table shares are written once. */
export type RouteEntry = Partial<Omit<Route, 'method' | 'path'>> & { at: `${Route['method']} /${string}` }

/** The table's shared fields, with the entry's own above them. */
type RouteOf<Shared, Entry> = {
  [Key in Exclude<keyof Shared | keyof Entry, 'at'>]: Key extends keyof Entry
    ? Entry[Key]
    : Key extends keyof Shared
      ? Shared[Key]
      : never
} & MethodAndPath<Entry>

/** As the entry writes them: `GET /users/user`. */
type MethodAndPath<Entry> = Entry extends { at: `${infer Method extends Route['method']} ${infer Path}` }
  ? { method: Method; path: Path }
  : never

/**
 * A table of routes. Keeps the exact type of each, so that its handler's types follow from it; that each is whole is
 * checked where all tables come together (`routes.ts`).
 */
export function defineRoutes<
  const Shared extends Partial<Route>,
  const Table extends Record<string, RouteEntry>,
>(shared: Shared, table: Table): { [Id in keyof Table]: RouteOf<Shared, Table[Id]> } {
  const routes = Object.entries(table).map(([id, { at, ...own }]) => {
    const [method, path] = at.split(' ')
    return [id, { ...shared, ...own, method, path }]
  })
  return Object.fromEntries(routes) as { [Id in keyof Table]: RouteOf<Shared, Table[Id]> }
}

/** Whether a route that takes no body refuses one with fields in it: its caller expects that they have an effect. */
export const refusesFields = ({ method, body, form, rawBody, ignoresUnknown }: Route): boolean =>
  method !== 'GET' && method !== 'DELETE' && !body && !form && !rawBody && !ignoresUnknown

/** The paths at which a route is served, as documented. */
export function mountsOf(route: Pick<Route, 'interface' | 'path'>): string[] {
  switch (route.interface) {
    case 'root':
      return [route.path]
    case 'owner':
      return [`/api/v1${route.path}`]
    case 'consumer':
    case 'diag':
      return [`/api/v1${route.path}`, route.path]
  }
}
