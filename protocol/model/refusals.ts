import type { Log } from './log.ts'
import type { Clock } from './runtime.ts'

/** What is told of a refusal, cut short: names and paths are of a stranger's making. */
export type RefusalFields = Readonly<Record<string, string | number | undefined>>

const MINUTE_MS = 60_000
/** More callers than these have one line a minute together: a stranger with many addresses is one too. */
const CALLERS = 20
const LONGEST_TEXT = 64

/** A text from outside as far as a log holds it. */
export const cutShort = (text: string): string =>
  text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text

/** The refusals of one caller since its last line. */
interface Told {
  fields: RefusalFields
  count: number
}

/**
 * Counts refusals, and writes one line a minute for each caller and reason (`why`): the first refusal at once, later ones with
 * their count. The log so names every reason, and no caller can push the past out of the log.
 */
export class Refusals<Kind extends string> {
  readonly #log: Log
  readonly #clock: Clock
  readonly #totals: Record<Kind, number>
  readonly #told = new Map<string, Told>()

  constructor(kinds: readonly Kind[], { log, clock }: { log: Log; clock: Clock }) {
    this.#log = log
    this.#clock = clock
    this.#totals = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Kind, number>
  }

  /** How many there have been since the start. */
  get totals(): Readonly<Record<Kind, number>> {
    return this.#totals
  }

  note(kind: Kind, caller: string, fields: RefusalFields = {}): void {
    this.#totals[kind] += 1
    if (this.#told.size === 0) this.#clock.after(MINUTE_MS, () => this.#endMinute())
    const reason = fields['why'] ?? ''
    const own = `${kind} ${caller} ${reason}`
    const isOne = this.#told.has(own) || this.#told.size < CALLERS
    const told = this.#told.get(isOne ? own : kind)
    const about = { refused: kind, caller: isOne ? caller : 'others', ...fields }
    if (told) {
      told.count += 1
      told.fields = about
    } else {
      this.#told.set(isOne ? own : kind, { fields: about, count: 0 })
      this.#write(about, 1)
    }
  }

  #endMinute(): void {
    for (const [key, told] of this.#told)
      if (told.count === 0) this.#told.delete(key)
      else {
        this.#write(told.fields, told.count)
        told.count = 0
      }
    if (this.#told.size > 0) this.#clock.after(MINUTE_MS, () => this.#endMinute())
  }

  #write(fields: RefusalFields, count: number): void {
    const cut = Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? cutShort(value) : value,
    ])
    this.#log.warn({ ...Object.fromEntries(cut), count }, 'refused')
  }
}
