/**
 * Statements that a transaction sends at the same moment reach PostgreSQL as one: consecutive reads, or consecutive
 * writes to different tables (README, Decisions). A joined statement has one snapshot. A lock therefore stays alone: a
 * later read must see the commits of others before the lock was granted.
 */

/** A statement with its values. */
export interface Part {
  text: string
  values: readonly unknown[]
}

const READ = /^\s*select\b/i
const LOCKING = /\bfor (?:no key |key )?(?:update|share)\b/i
const WRITE = /^\s*(?:insert into|update|delete from)\s+"?(\w+)/i
const RETURNING = /\breturning\b/i
/**
 * Statements of one run. Each number of statements is another text, which this process and each connection keep
 * prepared. Without a limit, batches of many orders would make texts without end.
 */
const MOST_JOINED = 16

const isRead = (text: string): boolean => READ.test(text) && !LOCKING.test(text)

/** Splits statements into runs, in their order. Each run becomes one statement. */
export function runsOf<P extends Part>(parts: readonly P[]): P[][] {
  const runs: P[][] = []
  for (const part of parts) {
    const run = runs.at(-1)
    if (run && run.length < MOST_JOINED && run.every(({ text }) => canJoin(text, part.text))) run.push(part)
    else runs.push([part])
  }
  return runs
}

/** Decisions by pairs of texts, which are few. */
const decisions = new Map<string, Map<string, boolean>>()

function canJoin(earlier: string, later: string): boolean {
  let known = decisions.get(earlier)
  if (!known) decisions.set(earlier, (known = new Map()))
  let decision = known.get(later)
  if (decision === undefined) {
    decision = isRead(earlier) ? isRead(later) : !mentions(later, earlier) && !mentions(earlier, later)
    known.set(later, decision)
  }
  return decision
}

/** Whether a statement names the table that `write` changes. True if `write` is no write. */
function mentions(text: string, write: string): boolean {
  const table = WRITE.exec(write)?.[1]
  return table === undefined || new RegExp(`\\b${table}\\b`).test(text)
}

/** Texts of runs, by the texts of their parts. */
const texts = new Map<string, string>()

/** One statement for the parts of a run. */
export function joined(parts: readonly Part[]): Part {
  if (parts.length === 1) return parts[0]!
  const key = parts.map(({ text }) => text).join(';')
  let text = texts.get(key)
  if (text === undefined) texts.set(key, (text = textOf(parts)))
  return { text, values: parts.flatMap(({ values }) => values) }
}

/** The server executes the parts in the order of their results. A write without `returning` has no rows. */
function textOf(parts: readonly Part[]): string {
  let places = 0
  const numbered = parts.map(({ text, values }) => {
    const before = places
    places += values.length
    return text.replace(/\$(\d+)/g, (_, place: string) => `$${Number(place) + before}`)
  })
  const rows = (source: string, index: number, filter = ''): string =>
    `(select coalesce(json_agg(r)${filter}, '[]') from ${source} as r) as r${index}`
  if (isRead(numbered[0]!))
    return `select ${numbered.map((text, index) => rows(`(${text})`, index)).join(', ')}`
  const writes = numbered.map((text, index) => {
    const returns = RETURNING.test(text)
    return {
      part: `w${index} as (${text}${returns ? '' : ' returning 1'})`,
      result: rows(`w${index}`, index, returns ? '' : ' filter (where false)'),
    }
  })
  return `with ${writes.map(({ part }) => part).join(', ')} select ${writes.map(({ result }) => result).join(', ')}`
}

/** The rows of each part in the rows of the joined statement. */
export const rowsOf = (rows: readonly unknown[], parts: readonly Part[]): (readonly unknown[])[] =>
  parts.length === 1
    ? [rows]
    : parts.map((_, index) => (rows[0] as Record<string, readonly unknown[]>)[`r${index}`]!)
