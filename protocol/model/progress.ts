import type { Clock } from './runtime.ts'

/** The used part of a stream such as `process.stderr`; declared here so that the protocol itself writes nowhere. */
export interface ProgressStream {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  write(text: string): unknown
}

/** The progress of a long command, in words. */
export interface Progress {
  /** Shows the progress. May be called at any rate. */
  show(text: string): void
  /** Clears the line. Call it before any other output and at the end. */
  clear(): void
}

/** A command that ends within this time shows no progress. */
const QUIET_MS = 2000
const REWRITE_MS = 100
const LINE_MS = 30_000
const CLEAR_LINE = '\r\u001b[2K'

/**
 * Progress on a stream. On a terminal one line is rewritten in place; elsewhere a line comes at most every 30 seconds. A
 * command that takes less than two seconds shows none. Give it a stream that carries no results: standard error.
 */
export function progressOn(stream: ProgressStream, clock: Clock): Progress {
  const startedAt = clock.monotonic()
  const isTerminal = stream.isTTY === true
  let shownAt = isTerminal ? -Infinity : startedAt
  let isShown = false
  return {
    show(text) {
      const now = clock.monotonic()
      if (now - startedAt < QUIET_MS || now - shownAt < (isTerminal ? REWRITE_MS : LINE_MS)) return
      shownAt = now
      isShown = isTerminal
      // A wider line would wrap and not be rewritten. Some terminals report no columns.
      const line = isTerminal ? CLEAR_LINE + text.slice(0, (stream.columns || 80) - 1) : `${text}\n`
      stream.write(line)
    },
    clear() {
      if (isShown) stream.write(CLEAR_LINE)
      isShown = false
    },
  }
}

/** `42 of 200 seeds, 1.7 a second, about 93 s to go` */
export function progressText(done: number, total: number, unit: string, elapsedMs: number): string {
  const rate = elapsedMs > 0 ? (done * 1000) / elapsedMs : 0
  const left =
    rate > 0 ? `, ${rate.toFixed(1)} a second, about ${Math.ceil((total - done) / rate)} s to go` : ''
  return `${done} of ${total} ${unit}${left}`
}
