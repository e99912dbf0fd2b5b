import { createClient } from '../../../protocol/client/client.ts'

interface Asked {
  url: string
  method: string
  headers: Record<string, string>
  body: unknown
}
type Answer = Response | Error

/** A client over a network with scripted answers; returns its pauses and its requests too. */
export function scripted(answers: (Answer | ((asked: Asked) => Answer))[], options = {}) {
  const asked: Asked[] = []
  const pauses: number[] = []
  let keys = 0
  const client = createClient({
    baseUrl: 'https://larder.example/',
    token: () => Promise.resolve('t'),
    system: {
      fetch: (url, { method, headers, body }) => {
        const request = { url, method: method!, headers: headers as Record<string, string>, body }
        asked.push(request)
        const next = answers.shift()
        const answer = typeof next === 'function' ? next(request) : next
        return answer instanceof Response
          ? Promise.resolve(answer)
          : Promise.reject(answer ?? new Error('no more'))
      },
      sleep: (ms, signal) => {
        // The limit of a silent connection is not a pause between attempts.
        if (ms >= 30_000) return new Promise<void>(() => {})
        pauses.push(ms)
        return signal?.aborted ? Promise.reject(new Error('aborted')) : Promise.resolve()
      },
      random: () => 0.5,
      now: () => 1_000_000,
      newKey: () => `key-${++keys}`,
    },
    ...options,
  })
  return { client, asked, pauses }
}

export const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } })
export const refused = (status: number, code: string, headers: Record<string, string> = {}): Response =>
  json({ error: { code, message: 'No.' }, detail: 'No.', request_id: 'req_1' }, status, headers)
/** A fetch without an answer: a frozen service, or a dead route. */
export const neverAnswered = (signal: AbortSignal | null | undefined): Promise<never> =>
  new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)))
export const lost = () => new TypeError('fetch failed')
export const payment = { body: { order_id: 1, payment_method_id: 'pm_card_visa' } }

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
