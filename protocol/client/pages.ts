import type { Call } from './types.ts'

interface Page {
  body: unknown
  headers: Headers
}

type Query = Record<string, unknown>

/** Every item of a list, page by page. The answer shows the kind of paging. */
export async function* itemsOf(
  input: Call,
  ask: (input: Call) => Promise<Page>,
): AsyncGenerator<never, void, undefined> {
  let query: Query | undefined = input.query ?? {}
  while (query) {
    const { body, headers } = await ask({ ...input, query })
    const found = listIn(body)
    yield* found as never[]
    query = nextOf(query, body as Query, found.length, headers)
  }
}

function listIn(body: unknown): unknown[] {
  if (Array.isArray(body)) return body as unknown[]
  const { data, items, logs } = body as Query
  return (data ?? items ?? logs) as unknown[]
}

/** The query of the next page; undefined at the end. */
function nextOf(query: Query, body: Query, count: number, headers: Headers): Query | undefined {
  if ('next_cursor' in body) {
    const name = 'after' in query || isEvents(body) ? 'after' : 'cursor'
    return body['has_more'] === true ? { ...query, [name]: body['next_cursor'] } : undefined
  }
  if (Array.isArray(body)) {
    const link = headers.get('Link')
    const next = /<[^>]*[?&]page=(\d+)[^>]*>; rel="next"/.exec(link ?? '')
    if (link !== null) return next ? { ...query, page: Number(next[1]) } : undefined
    // A list with an offset: a page that is not full is the last page.
    const limit = Number(query['limit'] ?? STANDARD_LIMIT)
    return count < limit ? undefined : { ...query, limit, offset: Number(query['offset'] ?? 0) + count }
  }
  const { page, size, per_page: perPage, total } = body as Record<string, number>
  return page! * (size ?? perPage)! < total! ? { ...query, page: page! + 1 } : undefined
}

/** C §4.6. */
const STANDARD_LIMIT = 50

/** The list of events continues with `after`, other lists with `cursor`. */
const isEvents = ({ data }: Query): boolean => String((data as { id?: unknown }[])[0]?.id).startsWith('evt_')
