import { randomHex } from '../../protocol/model/ids.ts'
import { copiedLog, type Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { MAX_LOG_BYTES, MAX_RECORDS } from '../../protocol/mqtt/diagnosis.ts'
import { plain } from '../recent.ts'

/** Bytes of the newest records that survive a restart. */
const KEPT_BYTES = 64 * 1024

/** The files of `node:fs` that this module uses. */
interface Files {
  readFileSync(path: string, encoding: 'utf8'): string
  writeFileSync(path: string, text: string): void
}

interface Line {
  text: string
  /** On the monotonic clock; the wall clock of a board may be corrected by years. -Infinity: of an earlier run. */
  loggedMs: number
}

export interface WantedLines {
  sinceMs: number
  limit: number
  after?: string | undefined
}

/**
 * The newest records of the hub's log as lines of JSON, in memory, for people afar. A file beside the journal takes the
 * newest of them over a restart; a hub that is killed writes no file.
 */
export class LogLines {
  readonly #runtime: Runtime
  readonly #path: string
  readonly #files: Files
  /** Part of the cursors: another run of the service has other numbers. */
  readonly #run: string
  #lines: Line[] = []
  #bytes = 0
  /** Number of the first line in `#lines`. */
  #first = 0

  constructor(path: string, runtime: Runtime, files: Files) {
    this.#path = path
    this.#runtime = runtime
    this.#files = files
    this.#run = randomHex(runtime.random, 4)
    for (const text of this.#restored()) this.#add({ text, loggedMs: -Infinity })
  }

  /** A log that also stores its records here, except debug records. */
  log(to: Log): Log {
    const { clock } = this.#runtime
    return copiedLog(to, (level, fields, message) => {
      const record = { at: new Date(clock.now()).toISOString(), level, message }
      this.#add({ text: textOf(record, fields), loggedMs: clock.monotonic() })
    })
  }

  /** The newest lines that are wanted, oldest first, and the cursor after them. */
  read({ sinceMs, limit, after }: WantedLines): { lines: string[]; cursor: string } {
    const from = this.#runtime.clock.monotonic() - sinceMs
    const [run, last] = after?.split('.') ?? []
    const wanted =
      run === this.#run
        ? this.#lines.slice(Math.max(0, Number(last) - this.#first))
        : this.#lines.filter(
            ({ text, loggedMs }) => loggedMs >= from || (loggedMs === -Infinity && this.#isOf(text, sinceMs)),
          )
    const cursor = `${this.#run}.${this.#first + this.#lines.length}`
    return { lines: newest(wanted.slice(-limit), MAX_LOG_BYTES), cursor }
  }

  /** Writes the newest lines to the file. */
  keep(): void {
    try {
      this.#files.writeFileSync(this.#path, newest(this.#lines, KEPT_BYTES).join('\n'))
    } catch {
      // A disk that fails is reported elsewhere; it must not prevent the service from ending.
    }
  }

  #restored(): string[] {
    try {
      return this.#files
        .readFileSync(this.#path, 'utf8')
        .split('\n')
        .filter((line) => timeOf(line) !== undefined)
    } catch {
      return []
    }
  }

  /** Whether a line of an earlier run is that new by the wall clock. */
  #isOf(text: string, sinceMs: number): boolean {
    return (timeOf(text) ?? 0) >= this.#runtime.clock.now() - sinceMs
  }

  #add(line: Line): void {
    this.#lines.push(line)
    this.#bytes += line.text.length + 1
    // Removes a quarter at once: a single removal would move all the others.
    if (this.#lines.length < MAX_RECORDS * 1.25 && this.#bytes < MAX_LOG_BYTES * 1.25) return
    const left = newest(this.#lines.slice(-MAX_RECORDS), MAX_LOG_BYTES).length
    this.#first += this.#lines.length - left
    this.#lines = this.#lines.slice(this.#lines.length - left)
    this.#bytes = this.#lines.reduce((sum, { text }) => sum + text.length + 1, 0)
  }
}

/** The texts of the newest lines that fit into so many bytes together. */
function newest(lines: readonly Line[], maxBytes: number): string[] {
  let left = maxBytes
  const first = lines.findLastIndex(({ text }) => (left -= Buffer.byteLength(text) + 1) < 0)
  return lines.slice(first + 1).map(({ text }) => text)
}

/** The time of a line, in milliseconds since the Unix epoch; undefined if it is no record. */
function timeOf(line: string): number | undefined {
  try {
    return Date.parse((JSON.parse(line) as { at: string }).at) || undefined
  } catch {
    return undefined
  }
}

/** A record as a line of JSON; without its fields if they have no JSON. */
function textOf(record: object, fields: object): string {
  try {
    return JSON.stringify({ ...record, ...plain(fields), ...record })
  } catch {
    return JSON.stringify(record)
  }
}
