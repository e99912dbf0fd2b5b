import type { Context } from 'hono'
import type { ErrorBody } from '../../../protocol/contract/errors.ts'
import type { Route } from '../../../protocol/contract/route.ts'
import { ApiError } from '../api-error.ts'
import { JsonText } from '../store/json.ts'
import { isOutage } from '../store/outage.ts'
import type { Reply } from './handler.ts'

/** What the app keeps with a request. */
export interface RequestState {
  Variables: {
    requestId: string
    address: string
    /** Its route as documented, where one serves it. */
    route?: string
    /** Headers of every answer to the request: an object, because filling a `Headers` takes longer than most handlers. */
    headers: Record<string, string>
  }
}
export type RequestContext = Context<RequestState>

/** An answer before it is sent. One with a text as its body can be stored and replayed. */
export interface Answer<Body = string | ReadableStream | null> {
  status: number
  headers: Readonly<Record<string, string>>
  body: Body
}

/** What a handler returned, as its route sends it. `check`: throws where it is not what the contract says. */
export function answerOf(route: Route, { body, status, headers }: Reply<unknown>, check: boolean): Answer {
  const other = typeof body === 'string' ? route.alsoProduces : undefined
  if (check && other === undefined) route.response.parse(body instanceof JsonText ? body.read() : body)
  const type = route.status !== 204 && {
    'Content-Type': `${other ?? route.produces ?? 'application/json'}; charset=utf-8`,
  }
  return {
    status: status ?? route.status ?? 200,
    headers: { ...type, ...headers },
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

/** When a caller may try again what cannot be done now. */
const RETRY_AFTER_SECONDS = 5

/**
 * The one renderer of errors. Whatever is not an `ApiError` is our own fault, or the database's which is away; its answer
 * reveals nothing of it.
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
      ...(status === 503 && { 'Retry-After': String(RETRY_AFTER_SECONDS) }),
      ...(status === 416 && { 'Content-Range': `bytes */${String(details?.['size'])}` }),
    },
    body: JSON.stringify(body),
  }
}

export async function send(
  c: RequestContext,
  { status, headers, body }: Answer<string | Uint8Array<ArrayBuffer> | ReadableStream | null>,
): Promise<Response> {
  const hasBody = status !== 204 && status !== 304 && c.req.raw.method !== 'HEAD'
  if (!hasBody && body instanceof ReadableStream) await body.cancel()
  return new Response(hasBody ? body : null, { status, headers: { ...c.get('headers'), ...headers } })
}
