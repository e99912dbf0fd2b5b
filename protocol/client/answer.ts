import type { Problem } from './api.ts'
import type { ClientCode, Failure, Result } from './types.ts'

export const aborted: Failure = { code: 'aborted', message: 'The caller has ended the call.', status: 0 }

/** Sends a try, and reads its answer. `signal` is the caller's. */
export async function resultOf(
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
    return { ok: false, error: signal?.aborted ? aborted : lostOf(error) }
  }
}

/** A failure without an answer of the service. */
export function lostOf(error: unknown): Failure {
  const { name, message } = error as Error
  const codes: Partial<Record<string, ClientCode>> = {
    TimeoutError: 'timeout',
    SyntaxError: 'unreadable_answer',
  }
  return { code: codes[name] ?? 'network_error', message, status: 0 }
}

interface ErrorAnswer {
  error?: { code: string; message: string; details?: Record<string, unknown> }
  detail: string | Problem[]
  request_id: string
}

/** Reads an error of the service, or of a proxy in front of it. */
export async function failureOf(answer: Response, now: () => number): Promise<Failure> {
  const { status, headers } = answer
  const retryAfterMs = retryAfterOf(headers.get('Retry-After'), now)
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
  const body = errorIn(await answer.text())
  if (!body) return { code: 'unreadable_answer', message: `HTTP ${status}`, status, ...wait }
  const { error, detail, request_id: requestId } = body
  return { ...error, status, requestId, ...(typeof detail !== 'string' && { problems: detail }), ...wait }
}

/** The error of the service in a text. A proxy answers with another text, or with another JSON. */
function errorIn(text: string): Required<ErrorAnswer> | undefined {
  try {
    const body = JSON.parse(text) as ErrorAnswer | null
    return typeof body?.error?.code === 'string' ? (body as Required<ErrorAnswer>) : undefined
  } catch {
    return undefined
  }
}

/** `Retry-After`: seconds, or a date. */
function retryAfterOf(text: string | null, now: () => number): number | undefined {
  if (text === null) return undefined
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}
