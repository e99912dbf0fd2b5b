import type { Clock } from '../../../protocol/model/runtime.ts'

/** Whether the process is starting, ready or stopping. */
type Phase = 'starting' | 'ready' | 'stopping'

/** Dependencies that must work before a load balancer sends calls here. A failing check rejects or returns false. */
export type Checks = Readonly<Record<string, () => boolean | Promise<unknown>>>

/** Timeout of a check in milliseconds. */
const CHECK_MS = 1000

/** Reports whether this process can serve callers. */
export class Health {
  phase: Phase = 'starting'
  readonly #clock: Clock
  readonly #checks: Checks

  constructor(clock: Clock, checks: Checks) {
    this.#clock = clock
    this.#checks = checks
  }

  /** Why it cannot serve now: its phase, or failing checks. */
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

/** `GET /healthz`: the process runs, so a restart would not help. `headers` are those of every answer. */
export const healthz = (headers: Readonly<Record<string, string>> = {}): Response =>
  Response.json({ status: 'ok' }, { headers: { ...headers, ...uncached } })

/** `GET /readyz`: 200 if this process can serve callers, else 503 with the reasons. */
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
