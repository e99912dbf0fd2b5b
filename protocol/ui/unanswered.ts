import type { Failure } from '../client/types.ts'
import type { BrowserStorage } from './browser-storage.ts'

interface Stored<Request> {
  at: number
  request: Request
}

/** Time for which the service knows a key, in milliseconds. */
const KEY_MS = 24 * 3_600_000

/** Statuses without an answer, or that refuse the call: an earlier try of the request may have been executed. */
const REFUSED_CALL = [0, 401, 403, 408, 429]
const UNKNOWN = ['unreadable_answer', 'idempotency_key_in_use']

/** Whether a failure is the outcome of its request. The outcome at a hub also has statuses of 500 and above. */
export const isOutcome = ({ status, code }: Failure): boolean =>
  code === 'hardware_error' || (status < 500 && !REFUSED_CALL.includes(status) && !UNKNOWN.includes(code))

/** A file as far as a page knows it without reading it. */
const entryOf = ([name, value]: readonly [string, string | File]): unknown[] =>
  typeof value === 'string' ? [name, value] : [name, value.name, value.size, value.lastModified]

const nameOf = (about: unknown): string =>
  `larder-unanswered ${JSON.stringify(about, (_, value: unknown) =>
    value instanceof FormData ? [...value].map(entryOf) : value,
  )}`

/**
 * Requests without a known outcome: a person presses a button again when the connection is lost. The same request again
 * has the key and the contents of the first one until the service reports an outcome, so that it is executed once.
 */
export class Unanswered {
  /** Survives a reload of the page, but not its tab: `sessionStorage`. */
  readonly #storage: Pick<BrowserStorage, 'getItem' | 'setItem' | 'removeItem'>
  readonly #now: () => number

  constructor(storage: Pick<BrowserStorage, 'getItem' | 'setItem' | 'removeItem'>, now: () => number) {
    this.#storage = storage
    this.#now = now
  }

  /**
   * Sends the stored request of this name, or a new one. `about`: what makes it the same request. `isRepeated`: an earlier
   * one has no known outcome.
   */
  async send<Request, R extends { ok: true } | { ok: false; error: Failure }>(
    about: unknown,
    make: () => Request | Promise<Request>,
    work: (request: Request) => Promise<R>,
  ): Promise<{ result: R; isRepeated: boolean }> {
    const name = nameOf(about)
    const stored = JSON.parse(this.#storage.getItem(name) ?? 'null') as Stored<Request> | null
    const known = stored !== null && this.#now() - stored.at < KEY_MS ? stored : undefined
    const sent = known ?? { at: this.#now(), request: await make() }
    this.#storage.setItem(name, JSON.stringify(sent))
    const result = await work(sent.request)
    if (result.ok || isOutcome(result.error)) this.#storage.removeItem(name)
    return { result, isRepeated: known !== undefined }
  }
}
