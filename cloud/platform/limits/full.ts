import type { Full } from '../../../protocol/model/budget.ts'
import { ApiError } from '../api-error.ts'

const words: Readonly<Record<Exclude<Full, 'total'>, string>> = {
  network: 'Your network',
  user: 'Your user',
  key: 'Your API key',
  tenant: 'Your owner account',
}

/**
 * The error of an exhausted budget: 429 if the caller's own share (`details.share_of`) is used up, 503 if the total is.
 * `what` names the counted things in the message.
 */
export const fullError = (full: Full, what: string): ApiError =>
  full === 'total'
    ? new ApiError('service_unavailable')
    : new ApiError('rate_limit_exceeded', `${words[full]} has too many ${what}.`, {
        share_of: full === 'tenant' ? 'owner' : full,
      })

/** Ends a wait if the budget takes a hold away from its caller (`HoldOptions.evict`). */
export class Eviction {
  #reject: (error: ApiError) => void = () => {}
  readonly #evicted = new Promise<never>((_resolve, reject) => (this.#reject = reject))

  constructor() {
    // The eviction may come while no caller waits.
    this.#evicted.catch(() => {})
  }

  evict(): void {
    this.#reject(new ApiError('service_unavailable'))
  }

  /** Rejects with `service_unavailable` once the hold is evicted. */
  orElse<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#evicted])
  }
}
