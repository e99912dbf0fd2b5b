import type { Queries } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/in-list.ts'
import { statement } from '../../platform/store/statement.ts'

/** Sent while a hub's summaries are being built again: its figures are too low until then. */
export const INCOMPLETE = { 'X-Incomplete': 'the summaries of this hub are being rebuilt' }

const underWay = statement((q, { hubIds }: { hubIds: readonly number[] }) =>
  q
    .selectFrom('sales_calendars')
    .select('hub_id')
    .where('hub_id', 'in', numbersIn(q, hubIds))
    .where('is_whole', '=', 0),
)

/** Read it after the figures: values that were read before a rebuild began are correct. */
export async function areIncomplete(q: Queries, books: readonly { hubId: number }[]): Promise<boolean> {
  const hubIds = books.map(({ hubId }) => hubId)
  return (await underWay(q, { hubIds })).length > 0
}
