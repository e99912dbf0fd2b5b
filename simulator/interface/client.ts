/** Sends a request: `fetch`, or a program that answers it without a connection. */
export type Fetch = (
  url: string,
  init: Omit<RequestInit, 'headers'> & { headers: Record<string, string> },
) => Response | Promise<Response>

/** An error answer, with its own message. */
export class AnswerError extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** The program does not answer. */
export class Unreachable extends Error {}

export interface JsonInterface {
  /** Throws `AnswerError`, or `Unreachable`. */
  ask<T>(method: string, path: string, body?: object): Promise<T>
}

const TIMEOUT_MS = 30_000

/** Calls an HTTP interface with JSON: the simulator's, or a hub's. */
export function jsonInterface(options: {
  url: string
  fetch?: Fetch
  headers?: Readonly<Record<string, string>>
  /** The name of the program, for the message that it does not answer. */
  name: string
}): JsonInterface {
  const { url, headers = {}, name, fetch: send = globalThis.fetch } = options
  const base = url.replace(/\/+$/, '')
  return {
    async ask<T>(method: string, path: string, body?: object): Promise<T> {
      let answer: Response
      let text: string
      try {
        answer = await send(`${base}${path}`, {
          method,
          headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
          signal: AbortSignal.timeout(TIMEOUT_MS),
          ...(body && { body: JSON.stringify(body) }),
        })
        text = await answer.text()
      } catch (error) {
        const { cause, message } = error as Error & { cause?: { code?: string } }
        throw new Unreachable(`${name} at ${base} does not answer (${cause?.code ?? message})`, {
          cause: error,
        })
      }
      const isJson = /^application\/json(;|$)/.test(answer.headers.get('content-type') ?? '')
      const json: unknown = isJson ? JSON.parse(text) : text
      if (answer.ok) return json as T
      const { error } = (isJson ? json : {}) as { error?: { code?: string; message?: string } }
      throw new AnswerError(answer.status, error?.code ?? String(answer.status), error?.message ?? text)
    },
  }
}

export type Simulator = JsonInterface
export const simulatorAt = (url: string, fetch?: Fetch): Simulator =>
  jsonInterface({ url, name: 'the simulator', ...(fetch && { fetch }) })
