import type { Context } from 'hono'
import type { ErrorBody } from '../../../protocol/contract/errors.ts'
import type { Route } from '../../../protocol/contract/route.ts'
import { ApiError } from '../api-error.ts'
import { JsonText } from '../store/json.ts'
import { isOutage } from '../store/outage.ts'
import type { Reply } from './handler.ts'
import { addRateHeaders, type Allowance } from './rate-limit.ts'

export type Headers = Readonly<Record<string, string>>

/** The target of a call: a route at one of its paths, or none. */
export interface Place {
  /** As documented (`/api/v1/owners/hubs`); `none` where no route serves it. */
  route: string
  /** Headers of every answer here. Headers with changing values are listed by name. */
  headers: Headers
  /** The allowance to report if the request took nothing from it. Undefined if there is no limit. */
  untouched: () => Allowance | undefined
  /** Renders an error answer; absent: JSON. */
  failed?: ((call: Call, answer: Answer<string>) => Answer<string>) | undefined
}

/** A request in progress. */
export class Call {
  readonly c: Context
  readonly place: Place
  readonly requestId: string
  readonly address: string
  /** The allowance that the request took from. */
  allowance: Allowance | undefined = undefined

  constructor(c: Context, place: Place, { requestId, address }: Pick<Call, 'requestId' | 'address'>) {
    this.c = c
    this.place = place
    this.requestId = requestId
    this.address = address
  }

  header(name: string): string | undefined {
    return this.c.req.header(name)
  }

  /**
   * All headers of its answer. Copies an object that already has their names. Filling a `Headers`, or an object name by
   * name, takes longer than most handlers.
   */
  headersWith(own: Headers): Record<string, string> {
    const headers: Record<string, string> = { ...this.place.headers }
    headers['X-Request-Id'] = this.requestId
    const allowance = this.allowance ?? this.place.untouched()
    if (allowance) addRateHeaders(headers, allowance)
    for (const name in own) headers[name] = own[name]!
    return headers
  }
}

/** An answer before it is sent. It can be stored and replayed if its body is text. */
export interface Answer<Body = string | ReadableStream | null> {
  status: number
  headers: Headers
  body: Body
}

/** The answer of a handler's result. `check`: throws if the result violates the contract. */
export function answerOf(route: Route, { body, status, headers }: Reply<unknown>, check: boolean): Answer {
  const isText = typeof body === 'string' || body instanceof ReadableStream
  const other = isText ? route.alsoProduces : undefined
  if (check && other === undefined) route.response.parse(body instanceof JsonText ? body.read() : body)
  const type = route.status !== 204 && {
    'Content-Type': `${other ?? route.produces ?? 'application/json'}; charset=utf-8`,
  }
  return {
    status: status ?? route.status ?? 200,
    headers: { ...type, ...(route.alsoProduces && { Vary: 'Accept' }), ...headers },
    body: bodyOf(route, body),
  }
}

function bodyOf(route: Route, body: unknown): Answer['body'] {
  if (route.status === 204) return ''
  if (body instanceof JsonText) return body.text
  if (body instanceof ReadableStream || body === null) return body
  const isText =
    route.produces !== undefined || (route.alsoProduces !== undefined && typeof body === 'string')
  return isText ? (body as string) : JSON.stringify(body)
}

/** `Retry-After` of a temporary failure. */
const RETRY_AFTER_SECONDS = 5

/**
 * The only renderer of errors. An error that is not an `ApiError` is internal, or the database is unavailable. Its
 * answer reveals no details.
 */
export function errorAnswer(thrown: unknown, requestId: string): Answer<string> {
  const error =
    thrown instanceof ApiError
      ? thrown
      : new ApiError(isOutage(thrown) ? 'service_unavailable' : 'internal_error')
  const { status, code, message, details, items } = error
  const body: ErrorBody = {
    error: { code, message, ...(details && { details }) },
    detail: items ? [...items] : message,
    request_id: requestId,
  }
  return {
    status,
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      ...(status === 401 && { 'WWW-Authenticate': 'Bearer realm="larder", APIKey' }),
      // The per-minute limit of calls sets its own `Retry-After`.
      ...((status === 503 || details?.['share_of'] !== undefined) && {
        'Retry-After': String(RETRY_AFTER_SECONDS),
      }),
      ...(status === 416 && { 'Content-Range': `bytes */${String(details?.['size'])}` }),
    },
    body: JSON.stringify(body),
  }
}

export function send(
  call: Call,
  { status, headers, body }: Answer<string | Uint8Array<ArrayBuffer> | ReadableStream | null>,
): Response {
  const hasBody = status !== 204 && status !== 304 && call.c.req.method !== 'HEAD'
  if (!hasBody && body instanceof ReadableStream) body.cancel().catch(() => {})
  return new Response(hasBody ? body : null, { status, headers: call.headersWith(headers) })
}
