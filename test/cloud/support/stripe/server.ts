import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StripeBooks } from './books.ts'
import { invalid, methodBody, StripeRefusal } from './objects.ts'
import { parseParams, requireKnown, textOf, type Params } from './params.ts'

export const STRIPE_KEY = 'sk_test_larder'

/** Faults of a call: before Stripe has executed it, or afterwards. */
export type Fault =
  | 'timeout-before'
  | 'timeout-after'
  | 'reset-before'
  | 'reset-after'
  | 'error-before'
  | 'error-after'
  | 'limited'
  | 'forbidden'
  | 'conflict'

export interface SeenCall {
  method: string
  path: string
  key: string | undefined
  params: Params
}

/**
 * A listening server with the part of Stripe's API that the service uses. It refuses calls without the key.
 */
export interface StripeServer {
  url: string
  books: StripeBooks
  /** Stripe's time, in milliseconds since the epoch. */
  now: () => number
  /** Received calls, oldest first. */
  calls: SeenCall[]
  /**
   * Answers the next calls that match `holds` with a fault; all of them until `heal` if `times` is absent.
   */
  fail(fault: Fault, holds?: (call: SeenCall) => boolean, times?: number): void
  heal(): void
  /** A new account, at this time. */
  reset(now: () => number): void
  close(): Promise<void>
}

interface Kept {
  fingerprint: string
  answer: Answer | undefined
  at: number
}
interface Answer {
  status: number
  body: unknown
}

/** Stripe forgets keys after a day. */
const KEY_MS = 24 * 3_600_000

export async function startStripeServer(): Promise<StripeServer> {
  let keys = new Map<string, Kept>()
  let faults: { fault: Fault; holds: (call: SeenCall) => boolean; left: number }[] = []
  const http = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const server: StripeServer = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    books: new StripeBooks(() => 0),
    now: () => 0,
    calls: [],
    fail: (fault, holds = () => true, times = Infinity) => void faults.push({ fault, holds, left: times }),
    heal: () => void (faults = []),
    reset(now) {
      keys = new Map()
      faults = []
      server.now = now
      server.calls = []
      server.books = new StripeBooks(now)
    },
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  }
  return server

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const url = new URL(request.url!, server.url)
    const text = Buffer.concat(chunks).toString()
    const call: SeenCall = {
      method: request.method!,
      path: url.pathname,
      key: request.headers['idempotency-key'] as string | undefined,
      params: parseParams(request.method === 'POST' ? text : url.searchParams.toString()),
    }
    server.calls.push(call)
    const fault = faults.find(({ holds, left }) => left > 0 && holds(call))
    if (fault) fault.left -= 1
    const answer = (given: Answer, headers: Record<string, string> = {}): void => {
      response.writeHead(given.status, {
        'Content-Type': 'application/json',
        'Request-Id': `req_${server.calls.length}`,
        ...headers,
      })
      response.end(JSON.stringify(given.body))
    }
    if (request.headers.authorization !== `Bearer ${STRIPE_KEY}`)
      return answer(refusal(401, { type: 'invalid_request_error', message: 'Invalid API Key provided' }))
    if ((call.key?.length ?? 0) > 255)
      return answer(
        refusal(400, { type: 'invalid_request_error', message: 'The idempotency key is too long' }),
      )
    switch (fault?.fault) {
      case 'timeout-before':
        return
      case 'reset-before':
        return void request.socket.resetAndDestroy()
      case 'limited':
        return answer(
          refusal(429, { type: 'invalid_request_error', code: 'rate_limit', message: 'Too many requests' }),
        )
      case 'forbidden':
        return answer(
          refusal(403, {
            type: 'invalid_request_error',
            message: `The provided key 'rk_test_***' does not have the required permissions for this endpoint.`,
          }),
        )
      case 'conflict':
        return answer(
          refusal(409, { type: 'idempotency_error', code: 'idempotency_key_in_use', message: 'Under way' }),
        )
      case 'timeout-after':
        perform(call, text)
        return
      case 'reset-after':
        perform(call, text)
        return void request.socket.resetAndDestroy()
      case 'error-before':
        return answer(perform(call, text, () => ERROR).answer)
      case 'error-after':
        return answer(
          perform(call, text, (work) => {
            work()
            return ERROR
          }).answer,
        )
      case undefined: {
        const { answer: given, isReplayed } = perform(call, text)
        return answer(given, isReplayed ? { 'Idempotent-Replayed': 'true' } : {})
      }
    }
  }

  /** Executes a call once per key: a repetition gets the first result. */
  function perform(
    call: SeenCall,
    text: string,
    run: (work: () => Answer) => Answer = (work) => work(),
  ): { answer: Answer; isReplayed: boolean } {
    const fingerprint = `${call.path} ${text}`
    const kept = call.key === undefined ? undefined : keys.get(call.key)
    if (kept?.answer && server.now() - kept.at < KEY_MS) {
      if (kept.fingerprint !== fingerprint)
        return {
          answer: refusal(400, {
            type: 'idempotency_error',
            message: 'Keys for idempotent requests can only be used with the same parameters.',
          }),
          isReplayed: false,
        }
      return { answer: kept.answer, isReplayed: true }
    }
    const given = structuredClone(run(() => execute(call)))
    // Stripe does not store a failed validation.
    if (call.key !== undefined && given.status !== 400 && given.status !== 404)
      keys.set(call.key, { fingerprint, answer: given, at: server.now() })
    return { answer: given, isReplayed: false }
  }

  function execute(call: SeenCall): Answer {
    try {
      return { status: 200, body: route(server.books, call) }
    } catch (error) {
      if (error instanceof StripeRefusal) return refusal(error.status, error.body)
      throw error
    }
  }
}

const refusal = (status: number, error: Record<string, unknown>): Answer => ({ status, body: { error } })
const ERROR = refusal(500, { type: 'api_error', message: 'Something went wrong on our end.' })

function route(books: StripeBooks, { method, path, params }: SeenCall): unknown {
  const [, , collection = '', id = '', verb = ''] = path.split('/')
  const search = (objects: Iterable<{ metadata: Record<string, string>; created: number }>) => ({
    object: 'search_result',
    has_more: false,
    data: books.search(objects, textOf(params, 'query')),
  })
  switch (
    `${method} ${collection}${id === '' ? '' : id === 'search' ? '/search' : '/id'}${verb && `/${verb}`}`
  ) {
    case 'POST payment_intents':
      requireKnown(params, [
        'amount',
        'currency',
        'automatic_payment_methods',
        'metadata',
        'customer',
        'setup_future_usage',
        'payment_method',
        'confirm',
      ])
      return books.createIntent(params)
    case 'GET payment_intents':
      requireKnown(params, ofLists)
      return list('/v1/payment_intents', books.intents.values(), params)
    case 'GET payment_intents/search':
      return search(books.intents.values())
    case 'GET payment_intents/id':
      return books.intent(id)
    case 'POST payment_intents/id/cancel':
      return books.cancelIntent(id)
    case 'POST refunds':
      requireKnown(params, ['payment_intent', 'amount', 'metadata'])
      return books.createRefund(params)
    case 'GET refunds':
      requireKnown(params, ['payment_intent', ...ofLists])
      return list('/v1/refunds', books.refunds.values(), params)
    case 'GET disputes':
      requireKnown(params, ofLists)
      return list('/v1/disputes', books.disputes.values(), params)
    case 'GET refunds/id':
      return books.refunds.get(id)
    case 'POST customers':
      requireKnown(params, ['metadata'])
      return books.createCustomer(params)
    case 'GET customers/search':
      return search(books.customers.values())
    case 'DELETE customers/id':
      return books.removeCustomer(id)
    case 'POST setup_intents':
      requireKnown(params, ['customer', 'automatic_payment_methods', 'usage', 'metadata'])
      return books.createSetupIntent(params)
    case 'POST payment_methods':
      requireKnown(params, ['type', 'card'])
      return books.createMethod(params)
    case 'GET payment_methods/id':
      return methodBody(books.method(id))
    case 'POST payment_methods/id/attach':
      requireKnown(params, ['customer'])
      return books.attach(id, params)
    case 'POST payment_methods/id/detach':
      return books.detach(id)
    default:
      throw new StripeRefusal(404, {
        type: 'invalid_request_error',
        message: `Unrecognized request URL (${method}: ${path}).`,
      })
  }
}

const ofLists = ['created', 'limit', 'starting_after']

/** Newest first, in pages. */
function list(
  url: string,
  objects: Iterable<{ id: string; payment_intent?: string; created: number }>,
  params: Params,
): object {
  const since = Number((params['created'] as Params | undefined)?.['gte'] ?? 0)
  const last = params['starting_after']
  const all = [...objects]
    .filter(({ payment_intent }) => payment_intent === (params['payment_intent'] ?? payment_intent))
    .filter(({ created }) => created >= since)
    .toReversed()
  const after = all.findIndex(({ id }) => id === last) + 1
  if (last !== undefined && after === 0)
    throw invalid('No such object.', { code: 'resource_missing', param: 'starting_after' })
  const data = all.slice(after, after + Number(params['limit'] ?? 10))
  return { object: 'list', url, has_more: after + data.length < all.length, data }
}
