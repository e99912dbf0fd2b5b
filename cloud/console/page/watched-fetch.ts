/** Receives the state of service and session, as answers show it. */
interface Notice {
  /** The service does not answer. */
  away(): void
  present(): void
  signedOut(): void
}

/** Statuses with which a proxy answers in place of the service. */
const PROXY_STATUSES = [502, 503, 504]

/** The service uses the statuses of a proxy, too: the code of its error shows that it is there. */
async function isAway(answer: Response): Promise<boolean> {
  if (!PROXY_STATUSES.includes(answer.status)) return false
  const json = (await answer
    .clone()
    .json()
    .catch(() => null)) as { error?: { code?: string } } | null
  const code = json?.error?.code
  return code === undefined || code === 'service_unavailable'
}

/** `fetch` that notices whether the service answers, and whether the session has ended. */
export const watchedFetch =
  (notice: Notice) =>
  async (input: string, init: RequestInit): Promise<Response> => {
    try {
      const answer = await fetch(input, init)
      if (answer.status === 401) notice.signedOut()
      if (await isAway(answer)) notice.away()
      else notice.present()
      return answer
    } catch (error) {
      // A page that ends a call itself gives `AbortError`; the time limit of a call gives `TimeoutError`.
      const cause = (init.signal?.aborted ? init.signal.reason : error) as Error
      if (cause.name !== 'AbortError') notice.away()
      throw error
    }
  }
