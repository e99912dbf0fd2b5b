import { every, type Cancel, type Clock } from '../../protocol/model/runtime.ts'

/**
 * For how long this process has listened to hubs. Silence of another party counts only while somebody listens: time in which
 * the process stood still (SIGSTOP, a paused virtual machine), or had no broker or no database, is not the hub's silence.
 * Every deadline that ends something because a hub has not reported reads this.
 */
export interface Listening {
  /** Milliseconds without an interruption until now; 0 while the process does not listen. */
  forMs(): number
}

/** Of a process that has listened since now and is never interrupted. */
export function uninterrupted(clock: Clock): Listening {
  const since = clock.monotonic()
  return { forMs: () => clock.monotonic() - since }
}

export interface ListeningPorts {
  clock: Clock
  /** Interruptions that are shorter do not count. Milliseconds. */
  gapMs: number
  /** Whether the broker is connected and has delivered something within `gapMs`. */
  hearsBroker: () => boolean
  /** Resolves if the database answers. */
  pingDatabase: () => Promise<unknown>
}

/** Looks for interruptions several times within `gapMs`, and whenever somebody asks. */
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

  /** Nothing interrupts it before. */
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
    // The monotonic clock of a paused machine may stand still, too; then the wall clock is ahead of it.
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
      // That it does not answer is what this is about.
      .catch(() => {})
      .finally(() => void (this.#isPinging = false))
  }
}

const readBoth = (clock: Clock): { monotonic: number; wall: number } => ({
  monotonic: clock.monotonic(),
  wall: clock.now(),
})
