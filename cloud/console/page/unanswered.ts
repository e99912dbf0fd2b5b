import type { Failure } from '../../../protocol/client/types.ts'

/** Parts of a call that make it the same call. */
interface Named {
  params?: unknown
  query?: unknown
  body?: unknown
  form?: FormData
}

/** A file as far as a page knows it without reading it. */
const entryOf = ([name, value]: readonly [string, string | File]): unknown[] =>
  typeof value === 'string' ? [name, value] : [name, value.name, value.size, value.lastModified]

const nameOf = (endpoint: string, { params, query, body, form }: Named): string =>
  JSON.stringify([endpoint, params, query, body, form && [...form].map(entryOf)])

/** Whether the service may still execute the call, or may have executed it. */
const isUnanswered = ({ status, code }: Failure): boolean =>
  status === 0 || code === 'unreadable_answer' || code === 'idempotency_key_in_use'

/**
 * Keys of calls without an answer. The same call again has the same key, so that the service executes it once: a person
 * presses a button again when the connection is lost.
 */
export class Unanswered {
  readonly #keys = new Map<string, string>()
  readonly #newKey: () => string

  constructor(newKey: () => string) {
    this.#newKey = newKey
  }

  /** Makes a call with the key of an earlier one without an answer, or with a new key. */
  async call<R extends { ok: true } | { ok: false; error: Failure }>(
    endpoint: string,
    input: Named,
    work: (idempotencyKey: string) => Promise<R>,
  ): Promise<R> {
    const name = nameOf(endpoint, input)
    const key = this.#keys.get(name) ?? this.#newKey()
    const result = await work(key)
    if (!result.ok && isUnanswered(result.error)) this.#keys.set(name, key)
    else this.#keys.delete(name)
    return result
  }
}
