import type { Api, ErrorCode, Problem } from './api.ts'
import type { ClientSystem } from './system.ts'

type Endpoints = keyof Api
/** Endpoints with a live stream of messages. */
export type Live = { [E in Endpoints]: Api[E]['message'] extends undefined ? never : E }[Endpoints]
export type Endpoint = Exclude<Endpoints, Live>

type Item<Answer> = Answer extends readonly (infer I)[]
  ? I
  : Answer extends
        { data: readonly (infer I)[] } | { items: readonly (infer I)[] } | { logs: readonly (infer I)[] }
    ? I
    : never
type Pages = { page?: unknown } | { cursor?: unknown } | { after?: unknown } | { offset?: unknown }
/** Endpoints that answer with pages of a list. */
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
  /** Key of the call: the service executes all calls with it once. Default: a new key. */
  idempotencyKey?: string
}

/** Input of an endpoint. */
export type Input<E extends Endpoints> = Part<'params', Api[E]['params']> &
  Part<'query', Api[E]['query']> &
  Part<'body', Api[E]['body']> &
  (Api[E]['form'] extends true ? { form: FormData } : unknown) &
  CallOptions
/** The input; optional if it has no required field. */
export type Args<E extends Endpoints> =
  Partial<Input<E>> extends Input<E> ? [input?: Input<E>] : [input: Input<E>]

/** An untyped call. */
export interface Call {
  params?: Readonly<Record<string, unknown>>
  query?: Readonly<Record<string, unknown>>
  body?: unknown
  form?: FormData
  signal?: AbortSignal
  idempotencyKey?: string
}

/** Code of a failure without a readable answer of the service. */
export type ClientCode = 'network_error' | 'timeout' | 'aborted' | 'unreadable_answer'

/** A failure. The service may add codes. */
export interface Failure {
  code: ErrorCode | ClientCode | (string & Record<never, never>)
  message: string
  /** HTTP status; 0 if there is no answer. */
  status: number
  details?: Readonly<Record<string, unknown>>
  /** Problems of a 422, field by field. */
  problems?: readonly Problem[]
  /** Id of the request, for reports of a problem. */
  requestId?: string
  /** Time until the service expects a further try. */
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
  /** Maximum number of tries of a call. */
  tries: number
  /** First pause in milliseconds. Each further pause is twice as long. */
  firstMs: number
  /** Longest pause in milliseconds, unless the service asks for a longer one. */
  mostMs: number
  /** Longest `Retry-After` in milliseconds that the client waits for. */
  mostRetryAfterMs: number
  /**
   * Longest wait in milliseconds for an earlier try that the service still executes. Such pauses do not count as tries. The
   * service holds the key of a try for 60 s after its process has died.
   */
  mostInUseMs: number
}

/** A credential, or a function that returns one for each try. */
export type Secret = string | (() => string | Promise<string>)

export interface ClientOptions {
  /** `https://api.example`, without `/api/v1`. */
  baseUrl: string
  /** For the paths of owners and of diagnostics. */
  apiKey?: Secret
  /** An identity token: for customers, and for owners with a role. */
  token?: Secret
  /** For pages of the service itself, whose credential is the cookie of a session: the session's CSRF token. */
  csrf?: Secret
  retry?: Partial<Retry>
  /** Timeout of one try in milliseconds (default 30,000). Controls that take a minute have at least 75,000. */
  timeoutMs?: number
  /** Fetch, clock and randomness. Default: those of the runtime. */
  system?: Partial<ClientSystem>
}
