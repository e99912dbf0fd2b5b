import type { Log } from './log.ts'
import type { Clock } from './runtime.ts'

/**
 * Log lines that repeat. There are two tools:
 *
 * - `quietly` wraps the log of a whole program. It writes the first of several equal warnings or errors, counts the others,
 *   and writes the last one with their number once a minute.
 * - `RepeatedLine` belongs to one retry loop. It writes a line when the reason of the failure changes, and one when the loop
 *   succeeds. Pages and alarms read the current reason from it.
 */

const MINUTE_MS = 60_000
/** Equal lines are recognised among this many different ones in a minute. Above it, lines with one message are equal. */
const MAX_DIFFERENT = 200

interface Series {
  level: 'warn' | 'error'
  message: string
  firstAt: number
  fields: object
  /** Lines that were counted since the last written one. */
  count: number
}

/**
 * A log that does not repeat itself. Two warnings or errors are equal if message, reason and fields are equal; requests,
 * durations and stack traces do not count. `debug` and `info` pass unchanged. `flush` writes the counts so far.
 */
export function quietly(log: Log, clock: Clock, maxDifferent = MAX_DIFFERENT): Log & { flush(): void } {
  const all = new Map<string, Series>()

  function write({ level, message, firstAt, fields, count }: Series): void {
    log[level]({ ...fields, repeated: count, firstAt: new Date(firstAt).toISOString() }, message)
  }

  function flush(): void {
    for (const [key, series] of all)
      if (series.count === 0) all.delete(key)
      else {
        write(series)
        series.count = 0
      }
  }

  function endMinute(): void {
    flush()
    if (all.size > 0) clock.after(MINUTE_MS, endMinute)
  }

  const at =
    (level: Series['level']) =>
    (fields: object, message: string): void => {
      if (all.size === 0) clock.after(MINUTE_MS, endMinute)
      const exact = `${level} ${message} ${identityOf(fields)}`
      const key = all.has(exact) || all.size < maxDifferent ? exact : `${level} ${message}`
      const series = all.get(key)
      if (series) {
        series.count += 1
        series.fields = fields
      } else {
        all.set(key, { level, message, firstAt: clock.now(), fields, count: 0 })
        log[level](fields, message)
      }
    }

  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: at('warn'),
    error: at('error'),
    flush,
  }
}

/** Fields that differ between two occurrences of one problem. */
const VARYING = /^(requestId|path|session|attempts?|tries|pid|err|error|reason)$|Ms$/

/** The text of an error, whatever was thrown. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function identityOf(fields: object): string {
  const named = fields as Record<string, unknown>
  const reason = named['err'] ?? named['error'] ?? named['reason']
  // Without a reason, the fields are all that distinguishes two lines.
  if (reason === undefined) return textOf(fields)
  const others = Object.entries(named).filter(([name]) => !VARYING.test(name))
  // Ports, process ids and durations vary within one reason.
  return `${reasonOf(reason).replace(/\d+/g, '#')} ${textOf(others)}`
}

function textOf(value: object): string {
  try {
    return JSON.stringify(value)
  } catch {
    return ''
  }
}

export interface RepeatedLineOptions {
  log: Log
  clock: Clock
  /** A reason that lasts is logged again after this time, with the number of failures. Default: an hour. */
  againMs?: number
}

/** The present failure of a retry loop. Times are wall times in milliseconds. */
export interface Failing {
  reason: string
  since: number
  /** Failures with this reason in a row. */
  count: number
}

/**
 * The line of one retry loop. Writes a warning when the loop fails for a new reason, nothing while the reason stays (a count
 * once an hour), and one line when the loop succeeds again.
 */
export class RepeatedLine {
  readonly #log: Log
  readonly #clock: Clock
  readonly #againMs: number
  #failing: Failing | undefined
  #level: keyof Log = 'info'
  #writtenAt = -Infinity

  constructor({ log, clock, againMs = 60 * MINUTE_MS }: RepeatedLineOptions) {
    this.#log = log
    this.#clock = clock
    this.#againMs = againMs
  }

  /** The present reason; undefined while the loop succeeds. */
  get failing(): Readonly<Failing> | undefined {
    return this.#failing
  }

  /** The loop has failed. A new `reason` or a higher level writes a line; different `fields` do not. */
  failed(reason: string, fields: object, message: string, level: 'info' | 'warn' | 'error' = 'warn'): void {
    const clock = this.#clock
    const isLouder = levels.indexOf(level) > levels.indexOf(this.#level)
    if (this.#failing?.reason !== reason || isLouder) {
      this.#level = level
      if (this.#failing && this.#failing.count > 1)
        this.#log.info(
          { ...this.#failing, since: iso(this.#failing.since) },
          `${message}: the reason changes`,
        )
      this.#failing = { reason, since: clock.now(), count: 1 }
      this.#writtenAt = clock.monotonic()
      this.#log[level]({ ...fields, reason }, message)
      return
    }
    this.#failing.count += 1
    if (clock.monotonic() - this.#writtenAt < this.#againMs)
      return this.#log.debug({ ...fields, reason, count: this.#failing.count }, message)
    this.#writtenAt = clock.monotonic()
    const { count, since } = this.#failing
    this.#log[level]({ ...fields, reason, count, since: iso(since) }, message)
  }

  /** The loop succeeds. Writes `message` with the number of failures before it, if there were any. */
  succeeded(fields: object, message: string): void {
    const failing = this.#failing
    this.#failing = undefined
    if (failing) this.#log.info({ ...fields, ...failing, since: iso(failing.since) }, message)
  }
}

const levels: readonly (keyof Log)[] = ['info', 'warn', 'error']
const iso = (at: number): string => new Date(at).toISOString()
