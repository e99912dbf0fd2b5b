import type { Api, Problem } from './api.ts'
import { itemsOf } from './pages.ts'
import { isRepeatable, pauseAfter, standardRetry, takesKey } from './retry.ts'
import { follow } from './stream.ts'
import { surroundings, type ClientSystem } from './system.ts'
import type {
  Args,
  Call,
  ClientOptions,
  Endpoint,
  Failure,
  ItemOf,
  Live,
  Paged,
  Result,
  Retry,
  Secret,
} from './types.ts'

export type * from './api.ts'
export type * from './types.ts'
export type { ClientSystem } from './system.ts'
export { verifyWebhook, type Verified, type WebhookEvent } from './webhook.ts'

/** A call that failed, for whom an error is more convenient than a value. */
export class LarderError extends Error {
  readonly failure: Failure

  constructor(failure: Failure) {
    super(`${failure.code}: ${failure.message}`)
    this.name = 'LarderError'
    this.failure = failure
  }
}

/** What a call answered; throws `LarderError` where it failed. */
export function unwrap<Data>(result: Result<Data>): Data {
  if (!result.ok) throw new LarderError(result.error)
  return result.data
}

export interface Client {
  /**
   * Calls an endpoint: `call('GET /users/{user_id}/orders', { params: { user_id: 1 } })`. What went wrong is a value. Calls
   * that failed for a passing reason are sent again, with pauses; a POST under one `Idempotency-Key`, so that it happens once.
   */
  call<E extends Endpoint>(endpoint: E, ...args: Args<E>): Promise<Result<Api[E]['answer']>>
  /** The items of a list, page by page as they are asked for. Throws `LarderError`. */
  items<E extends Paged>(endpoint: E, ...args: Args<E>): AsyncGenerator<ItemOf<E>, void, undefined>
  /**
   * The messages of a live stream, as they come; goes on after the last one when the connection is lost, until its signal
   * aborts or its reader leaves. Throws `LarderError` where the service refuses.
   */
  live<E extends Live>(
    endpoint: E,
    ...args: LiveArgs<E>
  ): AsyncGenerator<Exclude<Api[E]['message'], undefined>, void, undefined>
  /** An order now and at each change, until its last state. */
  followOrder(order: {
    userId: number
    orderId: number
    signal?: AbortSignal
  }): AsyncGenerator<Exclude<Api[OrderStream]['message'], undefined>, void, undefined>
}

type OrderStream = 'GET /users/{user_id}/orders/{order_id}/events'
/** `after`: the id of the last event that is known. */
type LiveArgs<E extends Live> =
  Args<E> extends [input?: infer I]
    ? [input?: I & { after?: string }]
    : [input: Args<E>[0] & { after?: string }]

/** Sends one try. */
export type Send = (endpoint: string, call: Call, headers: Record<string, string>) => Promise<Response>

const TIMEOUT_MS = 30_000
/** Orders with this `processing_status`, and higher ones, change no more: COMPLETED, CANCELLED, FAILED, … */
const FIRST_LAST_STATE = 60

export function createClient(options: ClientOptions): Client {
  const system: ClientSystem = { ...surroundings, ...options.system }
  const retry: Retry = { ...standardRetry, ...options.retry }
  const send = sender(options, system)
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS

  async function call(endpoint: string, input: Call = {}): Promise<Result<unknown>> {
    const [method = '', path = ''] = endpoint.split(' ')
    const headers: Record<string, string> = {}
    if (takesKey(method, path)) headers['Idempotency-Key'] = input.idempotencyKey ?? system.newKey()
    for (let number = 1; ; number++) {
      const limit = AbortSignal.timeout(timeoutMs)
      const signal = input.signal ? AbortSignal.any([input.signal, limit]) : limit
      const result = await resultOf(
        () => send(endpoint, { ...input, signal }, headers),
        input.signal,
        system.now,
      )
      if (result.ok) return result
      const attempt = { number, failure: result.error, isRepeatable: isRepeatable(method, path) }
      const pauseMs = pauseAfter(attempt, retry, system.random)
      if (pauseMs === null) return result
      try {
        await system.sleep(pauseMs, input.signal)
      } catch {
        return { ok: false, error: aborted }
      }
    }
  }

  const live = (
    endpoint: string,
    input: Call & { after?: string } = {},
    isLast?: (message: unknown) => boolean,
  ) =>
    follow({
      open: (headers, signal) => send(endpoint, { ...input, signal }, headers),
      refusal: async (answer) => new LarderError(await failureOf(answer, system.now)),
      after: input.after,
      signal: input.signal,
      retry,
      system,
      isLast,
    })

  const client: Record<keyof Client, unknown> = {
    call,
    items: (endpoint: string, input: Call = {}) =>
      itemsOf(input, async (page) => {
        const result = await call(endpoint, page)
        return { body: unwrap(result), headers: (result as { headers: Headers }).headers }
      }),
    live: (endpoint: string, input?: Call & { after?: string }) => live(endpoint, input),
    followOrder: ({ userId, orderId, signal }: Parameters<Client['followOrder']>[0]) => {
      const endpoint: OrderStream = 'GET /users/{user_id}/orders/{order_id}/events'
      const params = { user_id: userId, order_id: orderId }
      return live(
        endpoint,
        { params, ...(signal && { signal }) },
        (order) => (order as { processing_status: number }).processing_status >= FIRST_LAST_STATE,
      )
    },
  }
  // Types are of the interface's table; at run time any endpoint is one.
  return client as unknown as Client
}

function sender({ baseUrl, apiKey, token }: ClientOptions, { fetch }: ClientSystem): Send {
  const base = `${baseUrl.replace(/\/+$/, '')}/api/v1`
  return async (endpoint, { params = {}, query = {}, body, form, signal }, headers) => {
    const [method = '', template = ''] = endpoint.split(' ')
    const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(params[name])),
    )
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query))
      for (const each of [value].flat() as (Plain | null | undefined)[])
        if (each !== undefined && each !== null) search.append(name, String(each))
    const [key, bearer] = await Promise.all([secretOf(apiKey), secretOf(token)])
    return fetch(`${base}${path}${search.size > 0 ? `?${search.toString()}` : ''}`, {
      method,
      headers: {
        ...(key !== undefined && { 'X-API-Key': key }),
        ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(form && { body: form }),
      ...(signal && { signal }),
    })
  }
}

/** What a parameter of an address is. */
type Plain = string | number | boolean

const secretOf = (secret: Secret | undefined) => (typeof secret === 'function' ? secret() : secret)

const aborted: Failure = { code: 'aborted', message: 'The caller has ended the call.', status: 0 }

async function resultOf(
  ask: () => Promise<Response>,
  signal: AbortSignal | undefined,
  now: () => number,
): Promise<Result<unknown>> {
  try {
    const answer = await ask()
    if (!answer.ok) return { ok: false, error: await failureOf(answer, now) }
    const text = await answer.text()
    const { status, headers } = answer
    const isJson = headers.get('Content-Type')?.startsWith('application/json')
    return { ok: true, data: text !== '' && isJson ? JSON.parse(text) : text || undefined, status, headers }
  } catch (error) {
    if (signal?.aborted) return { ok: false, error: aborted }
    const { name, message } = error as Error
    const code =
      name === 'TimeoutError' ? 'timeout' : name === 'SyntaxError' ? 'unreadable_answer' : 'network_error'
    return { ok: false, error: { code, message, status: 0 } }
  }
}

interface ErrorAnswer {
  error: { code: string; message: string; details?: Record<string, unknown> }
  detail: string | Problem[]
  request_id: string
}

/** An answer that is an error, as the service writes it; or as something before the service did. */
async function failureOf(answer: Response, now: () => number): Promise<Failure> {
  const { status, headers } = answer
  const retryAfterMs = retryAfterOf(headers.get('Retry-After'), now)
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
  const text = await answer.text()
  try {
    const { error, detail, request_id: requestId } = JSON.parse(text) as ErrorAnswer
    return { ...error, status, requestId, ...(typeof detail !== 'string' && { problems: detail }), ...wait }
  } catch {
    return { code: 'unreadable_answer', message: `HTTP ${status}`, status, ...wait }
  }
}

/** `Retry-After`: seconds, or a date. */
function retryAfterOf(text: string | null, now: () => number): number | undefined {
  if (text === null) return undefined
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}
