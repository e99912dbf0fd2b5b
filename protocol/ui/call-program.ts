import { resultOf } from '../client/answer.ts'
import type { Failure, Result } from '../client/types.ts'

interface Sent {
  method: string
  body?: object | undefined
  /** The session's CSRF token, for programs that need one. */
  csrf?: string
  /** Time limit in milliseconds (default 20,000). */
  timeoutMs?: number
}

const LIMIT_MS = 20_000

/** Calls a route of the page's own program that is not in the table of routes, once. An error is a value. */
export async function callProgram<T>(
  address: string,
  { method, body, csrf, timeoutMs = LIMIT_MS }: Sent,
): Promise<Result<T>> {
  const ask = (): Promise<Response> =>
    fetch(address, {
      method,
      headers: {
        ...(body && { 'Content-Type': 'application/json' }),
        ...(csrf !== undefined && { 'X-CSRF-Token': csrf }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    })
  const result = (await resultOf(ask, undefined, Date.now)) as Result<T>
  // A proxy, or the sign-in page of a network, answers in place of the program.
  if (result.ok && typeof result.data === 'string')
    return { ok: false, error: { code: 'unreadable_answer', message: 'a page', status: 0 } }
  return result
}

/** The sentence of a failed call for the person. A proxy answers with its own page while the program is away. */
export function sentenceOf({ status, code, message }: Failure, program: string): string {
  if (status === 0) return `${program} does not answer.`
  return code === 'unreadable_answer' ? `${program} answers ${status}.` : message
}

/** An error answer, with its sentence. */
export class CallError extends Error {
  readonly status: number
  readonly details: unknown
  constructor(failure: Failure) {
    super(sentenceOf(failure, 'It'))
    this.status = failure.status
    this.details = failure.details
  }
}

/** Time limit of a call to a program on this network, in milliseconds. */
const CALL_MS = 30_000

/** Calls the page's own program. Throws `CallError`, or an `Error` with a readable message if there is no answer in time. */
export async function call<T>(method: string, path: string, body?: object, timeoutMs = CALL_MS): Promise<T> {
  const result = await callProgram<T>(path, { method, body, timeoutMs })
  if (result.ok) return result.data
  if (result.error.status === 0)
    throw new Error('It does not answer: is it running, and are you on its network?')
  throw new CallError(result.error)
}
