import { uuidv7 } from '../../../protocol/model/ids.ts'
import { sleep, type Runtime } from '../../../protocol/model/runtime.ts'
import type { Tally } from './tally.ts'

export interface ApiRequest {
  /** Name for the counts. */
  name: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  bearer?: string
  apiKey?: string
  body?: object
}

export interface ApiAnswer {
  status: number
  /** `error.code` of an error. */
  code: string | undefined
  body: unknown
}

export interface Client {
  /** One attempt at the next process; undefined if no answer came. */
  once(request: ApiRequest): Promise<ApiAnswer | undefined>
  /** Retries under one idempotency key while processes die or are busy; undefined after `patienceMs`. */
  withRetries(request: ApiRequest, patienceMs?: number): Promise<ApiAnswer | undefined>
}

const TIMEOUT_MS = 12_000
/**
 * A key stays in use for long if its first request died with its process. The caller then starts again, as an
 * app does.
 */
const KEY_IN_USE_MS = 3000

/** An HTTP client like an app: it uses the processes in turn, and repeats unanswered requests. */
export function createClient(options: {
  urls: readonly string[]
  runtime: Runtime
  tally: Tally
  /** Called when a request that may change something is sent. */
  onSend?: () => void
}): Client {
  const { urls, runtime, tally } = options
  const { clock } = runtime
  let turn = 0

  async function send(request: ApiRequest, key: string | undefined): Promise<ApiAnswer | undefined> {
    const { name, method, path, bearer, apiKey, body } = request
    if (method !== 'GET') options.onSend?.()
    try {
      const response = await fetch(urls[turn++ % urls.length]! + path, {
        method,
        headers: {
          ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
          ...(apiKey !== undefined && { 'X-API-Key': apiKey }),
          ...(key !== undefined && { 'Idempotency-Key': key }),
          ...(body && { 'Content-Type': 'application/json' }),
        },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const answer: unknown = await response.json()
      const code = response.ok ? undefined : errorCode(answer)
      tally.hit(`answer ${name} ${response.status}${code === undefined ? '' : ` ${code}`}`)
      if (response.headers.has('Idempotent-Replayed')) tally.hit('also answers replayed')
      return { status: response.status, code, body: answer }
    } catch {
      tally.hit(`answer ${name} none`)
      return undefined
    }
  }

  const newKey = ({ method }: ApiRequest): string | undefined =>
    method === 'POST' ? uuidv7(runtime) : undefined

  return {
    once: (request) => send(request, newKey(request)),
    async withRetries(request, patienceMs = 60_000) {
      const end = clock.monotonic() + patienceMs
      let key = newKey(request)
      let keyUsedSince = clock.monotonic()
      while (clock.monotonic() < end) {
        const answer = await send(request, key)
        if (answer && !isPassing(answer)) return answer
        if (answer?.code === 'idempotency_key_in_use' && clock.monotonic() - keyUsedSince > KEY_IN_USE_MS) {
          key = newKey(request)
          keyUsedSince = clock.monotonic()
        }
        await sleep(clock, 200 + 300 * runtime.random.fraction())
      }
      return undefined
    },
  }
}

const PASSING = ['processor_unavailable', 'service_unavailable', 'idempotency_key_in_use']

/** Whether the error is transient and worth a retry. */
function isPassing({ status, code }: ApiAnswer): boolean {
  return status === 429 || status === 500 || PASSING.includes(code ?? '')
}

function errorCode(body: unknown): string {
  const { error } = body as { error?: { code?: unknown } }
  return typeof error?.code === 'string' ? error.code : 'no code'
}
