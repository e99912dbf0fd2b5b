import { aborted, failureOf, lostOf, resultOf } from './answer.ts'
import type { Api } from './api.ts'
import { deleted, isDeleted } from './deletion.ts'
import { isRepeatable, pauseAfter, pauseInUse, standardRetry, takesKey, timeoutOf } from './retry.ts'
import { follow, inTime } from './stream.ts'
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

/** The error of a failed call, for callers who prefer an exception. */
export class LarderError extends Error {
  readonly failure: Failure

  constructor(failure: Failure) {
    super(`${failure.code}: ${failure.message}`)
    this.name = 'LarderError'
    this.failure = failure
  }
}

/** Returns the answer of a call. Throws `LarderError` if the call failed. */
export function unwrap<Data>(result: Result<Data>): Data {
  if (!result.ok) throw new LarderError(result.error)
  return result.data
}

export interface Client {
  /**
   * Calls an endpoint: `call('GET /users/{user_id}/orders', { params: { user_id: 1 } })`. An error is a value. The
   * client repeats a call after a temporary failure, with pauses. Every try of a POST has one `Idempotency-Key`.
   */
  call<E extends Endpoint>(endpoint: E, ...args: Args<E>): Promise<Result<Api[E]['answer']>>
  /** The items of a list. The client reads the pages one after the other. Throws `LarderError`. */
  items<E extends Paged>(endpoint: E, ...args: Args<E>): AsyncGenerator<ItemOf<E>, void, undefined>
  /**
   * All rows of a report as CSV, in parts as they arrive, for endpoints that also produce `text/csv`. Throws `LarderError`.
   */
  csv<E extends Endpoint>(endpoint: E, ...args: Args<E>): AsyncGenerator<string, void, undefined>
  /**
   * The messages of a live stream. After a lost connection it continues with the next message, until the signal aborts or the
   * reader stops. Throws `LarderError` if the service refuses the stream.
   */
  live<E extends Live>(
    endpoint: E,
    ...args: LiveArgs<E>
  ): AsyncGenerator<Exclude<Api[E]['message'], undefined>, void, undefined>
  /** The order at once and at each change, until its last state. */
  followOrder(order: {
    userId: number
    orderId: number
    signal?: AbortSignal
  }): AsyncGenerator<Exclude<Api[OrderStream]['message'], undefined>, void, undefined>
}

type OrderStream = 'GET /users/{user_id}/orders/{order_id}/events'
interface LiveOptions {
  /** The id of the last event that the caller has. */
  after?: string
  /** Called when the stream cannot be opened. The client opens it again after a pause. */
  onFailure?: (failure: Failure) => void
}
type LiveArgs<E extends Live> =
  Args<E> extends [input?: infer I] ? [input?: I & LiveOptions] : [input: Args<E>[0] & LiveOptions]

/** Sends one try. */
export type Send = (endpoint: string, call: Call, headers: Record<string, string>) => Promise<Response>

const TIMEOUT_MS = 30_000
/** Orders with this `processing_status` or a higher one do not change any more: COMPLETED, CANCELLED, FAILED, … */
const FIRST_LAST_STATE = 60

export function createClient(options: ClientOptions): Client {
  const system: ClientSystem = { ...surroundings, ...options.system }
  const retry: Retry = { ...standardRetry, ...options.retry }
  const send = sender(options, system)
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS

  const call = caller({ send, system, retry, timeoutMs })

  const live = (endpoint: string, input: Call & LiveOptions = {}, isLast?: (message: unknown) => boolean) =>
    follow({
      open: (headers, signal) => send(endpoint, { ...input, signal }, headers),
      refusal: async (answer) => new LarderError(await failureOf(answer, system.now)),
      after: input.after,
      onFailure: input.onFailure,
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
    csv: (endpoint: string, input: Call = {}) => {
      const connection = new AbortController()
      const signal = AbortSignal.any([input.signal ?? [], connection.signal].flat())
      const watched = <T>(reading: Promise<T>) => inTime(reading, timeoutMs, connection, system)
      return textOf(async () => {
        const answer = await watched(send(endpoint, { ...input, signal }, { Accept: 'text/csv' }))
        if (answer.ok && answer.body) return answer.body
        throw new LarderError(await watched(failureOf(answer, system.now)))
      }, watched)
    },
    live: (endpoint: string, input?: Call & LiveOptions) => live(endpoint, input),
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
  // The types come from the table of routes; at run time any endpoint is accepted.
  return client as unknown as Client
}

interface Parts {
  send: Send
  system: ClientSystem
  retry: Retry
  timeoutMs: number
}

/** Calls an endpoint, several times if necessary. */
function caller({ send, system, retry, timeoutMs }: Parts) {
  return async function call(endpoint: string, input: Call = {}): Promise<Result<unknown>> {
    const [method = '', path = ''] = endpoint.split(' ')
    const headers: Record<string, string> = {}
    if (takesKey(method, path)) headers['Idempotency-Key'] = input.idempotencyKey ?? system.newKey()
    let inUseMs = 0
    // True if an earlier try may have been executed.
    let isUncertain = false
    for (let number = 1; ;) {
      // An upload over a slow line may take any time.
      const limit = input.form ? undefined : AbortSignal.timeout(timeoutOf(path, timeoutMs))
      const signal = AbortSignal.any([input.signal ?? [], limit ?? []].flat())
      const result = await resultOf(
        () => send(endpoint, { ...input, signal }, headers),
        input.signal,
        system.now,
      )
      if (result.ok) return result
      const { error: failure } = result
      if (isUncertain && (await isDeleted(endpoint, input, failure, call))) return deleted(input)
      isUncertain ||= failure.status !== 429
      // A key of the caller may belong to an earlier call.
      const hasEarlier = number > 1 || input.idempotencyKey !== undefined
      const isInUse = hasEarlier && failure.code === 'idempotency_key_in_use'
      const attempt = { number, failure, isRepeatable: isRepeatable(method, path) }
      const pauseMs = isInUse
        ? pauseInUse(inUseMs, retry, system.random)
        : pauseAfter(attempt, retry, system.random)
      if (pauseMs === null) return result
      if (isInUse) inUseMs += pauseMs
      else number += 1
      try {
        await system.sleep(pauseMs, input.signal)
      } catch {
        return { ok: false, error: aborted }
      }
    }
  }
}

/** The text of a body in parts. A lost connection is an error: the text is not whole. */
async function* textOf(
  open: () => Promise<ReadableStream<Uint8Array>>,
  watched: <T>(reading: Promise<T>) => Promise<T>,
): AsyncGenerator<string, void, undefined> {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  const decoder = new TextDecoder()
  try {
    reader = (await open()).getReader()
    for (let part = await watched(reader.read()); !part.done; part = await watched(reader.read()))
      yield decoder.decode(part.value, { stream: true })
  } catch (error) {
    throw error instanceof LarderError ? error : new LarderError(lostOf(error))
  } finally {
    void reader?.cancel().catch(() => {})
  }
}

function sender({ baseUrl, apiKey, token, csrf }: ClientOptions, { fetch }: ClientSystem): Send {
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
    const isRead = method === 'GET'
    const [key, bearer, own] = await Promise.all([
      secretOf(apiKey),
      secretOf(token),
      secretOf(isRead ? undefined : csrf),
    ])
    return fetch(`${base}${path}${search.size > 0 ? `?${search.toString()}` : ''}`, {
      method,
      headers: {
        ...(key !== undefined && { 'X-API-Key': key }),
        ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
        ...(own !== undefined && { 'X-CSRF-Token': own }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(form && { body: form }),
      ...(signal && { signal }),
    })
  }
}

/** A parameter of an address. */
type Plain = string | number | boolean

const secretOf = (secret: Secret | undefined) => (typeof secret === 'function' ? secret() : secret)

interface Page {
  body: unknown
  headers: Headers
}

type Query = Record<string, unknown>

/** Every item of a list, page by page. The answer shows the kind of paging. */
async function* itemsOf(
  input: Call,
  ask: (input: Call) => Promise<Page>,
): AsyncGenerator<never, void, undefined> {
  let query: Query | undefined = input.query ?? {}
  while (query) {
    const { body, headers } = await ask({ ...input, query })
    const found = listIn(body)
    yield* found as never[]
    query = nextOf(query, body as Query, found.length, headers)
  }
}

function listIn(body: unknown): unknown[] {
  if (Array.isArray(body)) return body as unknown[]
  const { data, items, logs } = body as Query
  return (data ?? items ?? logs) as unknown[]
}

/** The query of the next page; undefined at the end. */
function nextOf(query: Query, body: Query, count: number, headers: Headers): Query | undefined {
  if ('next_cursor' in body) {
    const name = 'after' in query || isEvents(body) ? 'after' : 'cursor'
    return body['has_more'] === true ? { ...query, [name]: body['next_cursor'] } : undefined
  }
  if (Array.isArray(body)) {
    const link = headers.get('Link')
    const next = /<[^>]*[?&]page=(\d+)[^>]*>; rel="next"/.exec(link ?? '')
    if (link !== null) return next ? { ...query, page: Number(next[1]) } : undefined
    // A list with an offset: a page that is not full is the last page.
    const limit = Number(query['limit'] ?? STANDARD_LIMIT)
    return count < limit ? undefined : { ...query, limit, offset: Number(query['offset'] ?? 0) + count }
  }
  const { page, size, per_page: perPage, total } = body as Record<string, number>
  return page! * (size ?? perPage)! < total! ? { ...query, page: page! + 1 } : undefined
}

/** C §4.6. */
const STANDARD_LIMIT = 50

/** The list of events continues with `after`, other lists with `cursor`. */
const isEvents = ({ data }: Query): boolean => String((data as { id?: unknown }[])[0]?.id).startsWith('evt_')

/** An event that a webhook receives. `id` is the id of the event, the same in every delivery. */
export type WebhookEvent = Pick<Api['GET /owners/events/stream']['message'] & object, 'type' | 'data'> & {
  id: string
  timestamp: string
}

export type Verified = { ok: true; event: WebhookEvent } | { ok: false; error: NotVerified }
export type NotVerified = 'missing_header' | 'too_old' | 'wrong_signature' | 'not_json'

export interface Delivery {
  /** The unparsed body. */
  body: string
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** `whsec_…`; while a secret is rotated, the old one and the new one. */
  secret: string | readonly string[]
  /** Maximum age of a delivery in seconds, and maximum lead of its clock (default 300). */
  toleranceSeconds?: number
  /** Milliseconds since the Unix epoch. */
  now?: () => number
}

const TOLERANCE_SECONDS = 300

/** Verifies that the service has signed a delivery (Standard Webhooks), and returns its event. */
export async function verifyWebhook({ body, headers, secret, ...options }: Delivery): Promise<Verified> {
  const { toleranceSeconds = TOLERANCE_SECONDS, now = surroundings.now } = options
  const header = (name: string): string | undefined =>
    headers instanceof Headers ? (headers.get(name) ?? undefined) : [headers[name]].flat()[0]
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(header)
  if (!id || !timestamp || !signatures) return { ok: false, error: 'missing_header' }
  const isInTime = Math.abs(now() / 1000 - Number(timestamp)) <= toleranceSeconds
  if (!isInTime) return { ok: false, error: 'too_old' }
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  const given = signatures
    .split(' ')
    .flatMap((each) => (each.startsWith('v1,') ? (bytesOf(each.slice(3)) ?? []) : []))
  const matches = [secret].flat().map(async (text) => {
    const bytes = bytesOf(text.replace(/^whsec_/, ''))
    if (!bytes) return false
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
      'verify',
    ])
    const all = given.map((signature) => crypto.subtle.verify('HMAC', key, signature, signed))
    return (await Promise.all(all)).includes(true)
  })
  if (!(await Promise.all(matches)).includes(true)) return { ok: false, error: 'wrong_signature' }
  try {
    return { ok: true, event: { id, ...(JSON.parse(body) as Omit<WebhookEvent, 'id'>) } }
  } catch {
    return { ok: false, error: 'not_json' }
  }
}

/** Decodes base64; undefined if the text is not base64. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
