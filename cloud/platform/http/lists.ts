import { csvLine, csvLines } from '../csv.ts'

/** A page of a list. */
export interface List<Row, Cursor = string> {
  data: Row[]
  next_cursor: Cursor | null
  has_more: boolean
}

/** A page from its rows and one more, which shows that there are further rows. */
export function pageOf<Row, Cursor>(
  found: readonly Row[],
  limit: number,
  cursorOf: (last: Row) => Cursor,
): List<Row, Cursor> {
  const data = found.slice(0, limit)
  const has_more = found.length > limit
  return { data, next_cursor: has_more ? cursorOf(data.at(-1)!) : null, has_more }
}

interface Wanted {
  cursor?: string | undefined
  limit: number
}

/** Rows that an export reads at once. */
const EXPORT_ROWS = 500

/**
 * A list as the caller prefers it: one page as JSON, or all rows as CSV. The CSV is read page by page as fast as its
 * reader takes it, so its size does not matter.
 */
export async function answerList<Row extends object>(
  { query, wantsOther }: { query: Wanted; wantsOther: boolean },
  columns: readonly (keyof Row & string)[],
  read: (wanted: Wanted) => Promise<List<Row>>,
): Promise<List<Row> | ReadableStream> {
  if (!wantsOther) return read(query)
  // The first page is read before the answer begins, so that its errors have their status.
  let page: List<Row> | null = await read({ cursor: undefined, limit: EXPORT_ROWS })
  let lines = csvLine(columns)
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      if (page === null) return controller.close()
      controller.enqueue(encoder.encode(lines + csvLines(columns, page.data)))
      lines = ''
      page = page.next_cursor === null ? null : await read({ cursor: page.next_cursor, limit: EXPORT_ROWS })
    },
  })
}

/** The offset of a page, capped at the largest safe integer. */
export const offsetOf = (page: number, size: number): number =>
  Math.min((page - 1) * size, Number.MAX_SAFE_INTEGER)
