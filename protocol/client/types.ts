import type { Api, ErrorCode, Problem } from './api.ts'
import type { ClientSystem } from './system.ts'

type Endpoints = keyof Api
/** Endpoints that are answered with messages as they come. */
export type Live = { [E in Endpoints]: Api[E]['message'] extends undefined ? never : E }[Endpoints]
export type Endpoint = Exclude<Endpoints, Live>

type Item<Answer> = Answer extends readonly (infer I)[]
  ? I
  : Answer extends
        { data: readonly (infer I)[] } | { items: readonly (infer I)[] } | { logs: readonly (infer I)[] }
    ? I
    : never
type Pages = { page?: unknown } | { cursor?: unknown } | { after?: unknown } | { offset?: unknown }
/** Endpoints whose answers are pages of a list. */
export type Paged = {
  [E in Endpoint]: Api[E]['query'] extends infer Q
    ? Q extends object
      ? keyof Q & ('page' | 'cursor' | 'after' | 'offset') extends never
        ? never
        : Q extends Pages
          ? E
          : never
      : never
    : never
}[Endpoint]
export type ItemOf<E extends Paged> = Item<Api[E]['answer']>

type Part<Name extends string, Value> = [Value] extends [undefined]
  ? unknown
  : Partial<Value> extends Value
    ? { [K in Name]?: Value }
    : { [K in Name]: Value }

interface CallOptions {
  /** Ends the call, its retries and its pauses. */
  signal?: AbortSignal
  /** Names the call, so that it happens once however often it is sent; the client makes one where it is absent. */
  idempotencyKey?: string
}

/** What an endpoint takes. */
export type Input<E extends Endpoints> = Part<'params', Api[E]['params']> &
  Part<'query', Api[E]['query']> &
  Part<'body', Api[E]['body']> &
  (Api[E]['form'] extends true ? { form: FormData } : unknown) &
  CallOptions
/** May be left out where nothing in it is needed. */
export type Args<E extends Endpoints> =
  Partial<Input<E>> extends Input<E> ? [input?: Input<E>] : [input: Input<E>]

/** What a call is, before its types are looked at. */
export interface Call {
  params?: Readonly<Record<string, unknown>>
  query?: Readonly<Record<string, unknown>>
  body?: unknown
  form?: FormData
  signal?: AbortSignal
  idempotencyKey?: string
}

/** Why there is no answer of the service, or none that can be read. */
export type ClientCode = 'network_error' | 'timeout' | 'aborted' | 'unreadable_answer'

/** What went wrong. Further codes of the service may come. */
export interface Failure {
  code: ErrorCode | ClientCode | (string & Record<never, never>)
  message: string
  /** HTTP; 0 where there is no answer. */
  status: number
  details?: Readonly<Record<string, unknown>>
  /** Of a 422: what is wrong, field by field. */
  problems?: readonly Problem[]
  /** Name it when you ask us. */
  requestId?: string
  /** When the service says that a further try makes sense. */
  retryAfterMs?: number
}

export interface Success<Data> {
  ok: true
  data: Data
  status: number
  headers: Headers
}
export type Result<Data> = Success<Data> | { ok: false; error: Failure }

export interface Retry {
  /** How often a call is sent at most. */
  tries: number
  /** The first pause; each further one is twice as long. */
  firstMs: number
  /** The longest pause, unless the service asks for a longer one. */
  mostMs: number
  /** A service that asks for more patience than this is not waited for. */
  mostRetryAfterMs: number
}

/** A credential, or what gets one anew for each try. */
export type Secret = string | (() => string | Promise<string>)

export interface ClientOptions {
  /** `https://api.example`, without `/api/v1`. */
  baseUrl: string
  /** For the paths of owners and of diagnostics. */
  apiKey?: Secret
  /** An identity token: for customers, and for owners with a role. */
  token?: Secret
  retry?: Partial<Retry>
  /** How long one try may take. */
  timeoutMs?: number
  /** Fetch, clock and chance; the surroundings' own where absent. */
  system?: Partial<ClientSystem>
}
