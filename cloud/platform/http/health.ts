import type { Clock } from '../../../protocol/model/runtime.ts'

/** Whether the process is starting, at work or about to end. */
export type Phase = 'starting' | 'ready' | 'stopping'

/** What must answer before a load balancer sends anybody here; each rejects, or is false, where it does not. */
export type Checks = Readonly<Record<string, () => boolean | Promise<unknown>>>

/** A check that takes longer has failed. */
const CHECK_MS = 1000

/** Says of what use this process is to callers. */
export class Health {
  phase: Phase = 'starting'
  readonly #clock: Clock
  readonly #checks: Checks

  constructor(clock: Clock, checks: Checks) {
    this.#clock = clock
    this.#checks = checks
  }

  /** What keeps it from being of use now: its phase, or checks that fail. */
  async failing(): Promise<string[]> {
    if (this.phase !== 'ready') return [this.phase]
    const names = Object.entries(this.#checks).map(async ([name, check]) =>
      (await this.#holds(check)) ? [] : [name],
    )
    return (await Promise.all(names)).flat()
  }

  #holds(check: Checks[string]): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(CHECK_MS, () => resolve(false))
      const end = (holds: boolean): void => {
        cancel()
        resolve(holds)
      }
      Promise.resolve()
        .then(check)
        .then(
          (value) => end(value !== false),
          () => end(false),
        )
    })
  }
}

const uncached = { 'Cache-Control': 'no-store' }

/** `GET /healthz`: it runs, so that there is no use in starting it anew. `headers` are those of every answer. */
export const healthz = (headers: Readonly<Record<string, string>> = {}): Response =>
  Response.json({ status: 'ok' }, { headers: { ...headers, ...uncached } })

/** `GET /readyz`: 200 where callers are of use here, else 503 with the reasons. */
export async function readyz(
  health: Health,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const failing = await health.failing()
  const isReady = failing.length === 0
  return Response.json(
    { status: isReady ? 'ready' : 'not ready', failing },
    { status: isReady ? 200 : 503, headers: { ...headers, ...uncached } },
  )
}
