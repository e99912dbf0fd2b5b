import { every, type Cancel, type Clock } from '../../protocol/model/runtime.ts'

/**
 * How long this process has listened to hubs. A hub's silence counts only while the process listens. It does not listen
 * while it is stopped (SIGSTOP, a paused virtual machine) or has no broker or no database. Every deadline that ends
 * something because a hub has not reported reads this.
 */
export interface Listening {
  /** Milliseconds without an interruption until now; 0 while the process does not listen. */
  forMs(): number
}

/** A process that has listened since now and is never interrupted. */
export function uninterrupted(clock: Clock): Listening {
  const since = clock.monotonic()
  return { forMs: () => clock.monotonic() - since }
}

interface ListeningPorts {
  clock: Clock
  /** Milliseconds. Shorter interruptions do not count. */
  gapMs: number
  /** Whether the broker is connected and has delivered something within `gapMs`. */
  hearsBroker: () => boolean
  /** Resolves if the database answers. */
  pingDatabase: () => Promise<unknown>
}

/** Checks for interruptions several times within `gapMs`, and at each call of `forMs`. */
export class ListeningWatch implements Listening {
  readonly #ports: ListeningPorts
  /** Monotonic; undefined while it does not listen. */
  #since: number | undefined
  #lookedAt: { monotonic: number; wall: number }
  #databaseAt: number
  #isPinging = false
  #isStarted = false
  #cancel: Cancel = () => {}

  constructor(ports: ListeningPorts) {
    this.#ports = ports
    this.#lookedAt = readBoth(ports.clock)
    this.#databaseAt = this.#lookedAt.monotonic
    this.#since = this.#lookedAt.monotonic
  }

  start(): void {
    this.#isStarted = true
    this.#look()
    this.#ping()
    this.#cancel = every(this.#ports.clock, this.#ports.gapMs / 5, () => {
      this.#look()
      this.#ping()
    })
  }

  stop(): void {
    this.#cancel()
  }

  forMs(): number {
    const now = this.#look()
    return this.#since === undefined ? 0 : now - this.#since
  }

  /** Returns the monotonic time. */
  #look(): number {
    if (!this.#isStarted) return this.#ports.clock.monotonic()
    const { clock, gapMs, hearsBroker } = this.#ports
    const before = this.#lookedAt
    const now = readBoth(clock)
    this.#lookedAt = now
    const passedMs = now.monotonic - before.monotonic
    // The monotonic clock of a paused machine may stop, too. The wall clock is then ahead of it.
    const stoodStill = passedMs > gapMs || now.wall - before.wall - passedMs > gapMs
    const listens = hearsBroker() && now.monotonic - this.#databaseAt <= gapMs
    if (!listens) this.#since = undefined
    else if (stoodStill || this.#since === undefined) this.#since = now.monotonic
    return now.monotonic
  }

  #ping(): void {
    if (this.#isPinging) return
    this.#isPinging = true
    void this.#ports
      .pingDatabase()
      .then(() => void (this.#databaseAt = this.#ports.clock.monotonic()))
      // The next check notices the missing answer.
      .catch(() => {})
      .finally(() => void (this.#isPinging = false))
  }
}

const readBoth = (clock: Clock): { monotonic: number; wall: number } => ({
  monotonic: clock.monotonic(),
  wall: clock.now(),
})
