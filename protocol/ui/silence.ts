/** Interval of the checks in milliseconds. A live stream sends an event at least every 15 s. */
const CHECK_MS = 15_000
/** Checks in a row without an event after which the connection counts as lost. */
const QUIET_CHECKS = 3

interface Watched {
  /** Number of events so far. */
  events: () => number
  /** Whether the watched stream was closed. */
  isClosed: () => boolean
  pause: (ms: number) => Promise<void>
}

/** Resolves with true when a stream is silent for 45 s, and with false after it was closed. A program without power reports no error. */
export async function isSilent({ events, isClosed, pause }: Watched): Promise<boolean> {
  let before = events()
  for (let quiet = 0; quiet < QUIET_CHECKS;) {
    await pause(CHECK_MS)
    if (isClosed()) return false
    quiet = events() === before ? quiet + 1 : 0
    before = events()
  }
  return true
}
