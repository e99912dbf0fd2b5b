/** Time limit of a call in milliseconds. */
const LIMIT_MS = 20_000

/** A call about the session of this browser. Throws an error with a sentence for the person. */
export async function sessionCall<T>(url: string, init: RequestInit): Promise<T> {
  let answer: Response
  let text: string
  try {
    answer = await fetch(url, { ...init, signal: AbortSignal.timeout(LIMIT_MS) })
    text = await answer.text()
  } catch {
    throw new Error('The service does not answer.')
  }
  const json = jsonOf(text) as (T & { error?: { message?: string } }) | undefined
  const isReadable = answer.status === 204 || json !== undefined
  if (answer.ok && isReadable) return json as T
  // A proxy answers with its own page while the service is away.
  throw new Error(json?.error?.message ?? `The service answers ${answer.status}.`)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
