import type { Log } from './log.ts'
import type { Clock } from './runtime.ts'

/** The logged fields of a refusal. Long texts are cut, because the caller chooses names and paths. */
export type RefusalFields = Readonly<Record<string, string | number | undefined>>

const MINUTE_MS = 60_000
/** Callers beyond this number share one line a minute, so that a caller with many addresses cannot fill the log. */
const CALLERS = 20
const LONGEST_TEXT = 64

/** A text of a caller, cut to the length that a log stores. */
export const cutShort = (text: string): string =>
  text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text

/** The refusals of one caller since its last line. */
interface Reported {
  fields: RefusalFields
  count: number
}

/**
 * Counts refusals, and writes one line a minute for each caller and reason (`why`): the first refusal at once, later
 * ones with their count. So the log contains every reason, and no caller can flood it.
 */
export class Refusals<Kind extends string> {
  readonly #log: Log
  readonly #clock: Clock
  readonly #totals: Record<Kind, number>
  readonly #reported = new Map<string, Reported>()

  constructor(kinds: readonly Kind[], { log, clock }: { log: Log; clock: Clock }) {
    this.#log = log
    this.#clock = clock
    this.#totals = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Kind, number>
  }

  /** The numbers of refusals since the start. */
  get totals(): Readonly<Record<Kind, number>> {
    return this.#totals
  }

  note(kind: Kind, caller: string, fields: RefusalFields = {}): void {
    this.#totals[kind] += 1
    if (this.#reported.size === 0) this.#clock.after(MINUTE_MS, () => this.#endMinute())
    const reason = fields['why'] ?? ''
    const own = `${kind} ${caller} ${reason}`
    const isOne = this.#reported.has(own) || this.#reported.size < CALLERS
    const reported = this.#reported.get(isOne ? own : kind)
    const about = { refused: kind, caller: isOne ? caller : 'others', ...fields }
    if (reported) {
      reported.count += 1
      reported.fields = about
    } else {
      this.#reported.set(isOne ? own : kind, { fields: about, count: 0 })
      this.#write(about, 1)
    }
  }

  #endMinute(): void {
    for (const [key, reported] of this.#reported)
      if (reported.count === 0) this.#reported.delete(key)
      else {
        this.#write(reported.fields, reported.count)
        reported.count = 0
      }
    if (this.#reported.size > 0) this.#clock.after(MINUTE_MS, () => this.#endMinute())
  }

  #write(fields: RefusalFields, count: number): void {
    const cut = Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? cutShort(value) : value,
    ])
    this.#log.warn({ ...Object.fromEntries(cut), count }, 'refused')
  }
}
