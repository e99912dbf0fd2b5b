import { sql, type RawBuilder } from 'kysely'
import { paymentColumns, type OwnerPayment } from '../../../protocol/contract/owner-reports.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { readableBooks, type HubBook } from '../../platform/credentials/hub-access.ts'
import { requireOrder, withinRange, type AskedRange } from '../../platform/http/date-range.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { answerList, pageOf, type List } from '../../platform/http/lists.ts'
import type { Queries } from '../../platform/store/database.ts'
import { EXTERNAL } from '../processors/processor.ts'

/**
 * Movements of money: completed payments, succeeded refunds, disputes, and disputes that were won. They are read by owner
 * and time from one index each, so the cost of a page does not grow with the orders.
 */
const sources = [
  { prefix: 'dp', suffix: '', table: 'refunds', at: 'created_at', sign: -1, type: 'dispute', status: 'lost' },
  {
    prefix: 'dp',
    suffix: '_won',
    table: 'refunds',
    at: 'updated_at',
    sign: 1,
    type: 'dispute',
    status: 'won',
  },
  {
    prefix: 'pay',
    suffix: '',
    table: 'payments',
    at: 'created_at',
    sign: 1,
    type: 'payment',
    status: 'completed',
  },
  {
    prefix: 're',
    suffix: '',
    table: 'refunds',
    at: 'created_at',
    sign: -1,
    type: 'refund',
    status: 'succeeded',
  },
] as const

/** The rows of each source. The first terms are those of the indexes. */
const conditions = [
  sql`reason = 'dispute' and completed_at is not null`,
  sql`reason = 'dispute' and status = 'failed' and completed_at is not null`,
  sql`status = 'completed'`,
  sql`reason <> 'dispute' and status = 'succeeded'`,
]

interface Wanted extends AskedRange {
  order_id?: number | undefined
  cursor?: string | undefined
  limit: number
}

/** Reads a page of the movements of money, newest first. */
async function readPayments(
  q: Queries,
  books: readonly HubBook[],
  { order_id, cursor, limit, ...range }: Wanted,
): Promise<List<OwnerPayment>> {
  requireOrder(
    books.map(({ timezone }) => timezone),
    range,
  )
  const after = cursor === undefined ? undefined : await placeOf(q, books, cursor)
  const ofOwner = new Map<number, HubBook[]>()
  for (const book of books) {
    const own = ofOwner.get(book.ownerId)
    if (own) own.push(book)
    else ofOwner.set(book.ownerId, [book])
  }
  const found: Place[] = []
  for (let first = 0; first < ofOwner.size; first += OWNERS_AT_ONCE) {
    const owners = [...ofOwner].slice(first, first + OWNERS_AT_ONCE)
    found.push(...(await placesOf(q, owners, { order_id, limit, after, range })))
  }
  const rows = found.toSorted((a, b) => b.at - a.at || b.source - a.source || b.number - a.number)
  return pageOf(await describe(q, rows.slice(0, limit + 1)), limit, ({ id }) => id)
}

/** A database limits the parts of a statement, and each owner needs a part for each source. */
const OWNERS_AT_ONCE = 25

interface WantedPlaces extends Pick<Wanted, 'order_id' | 'limit'> {
  after: Place | undefined
  range: AskedRange
}

/** The newest rows of some owners, and one more than the limit. */
async function placesOf(
  q: Queries,
  owners: readonly (readonly [owner: number, own: readonly HubBook[]])[],
  { order_id, limit, after, range }: WantedPlaces,
): Promise<Place[]> {
  const parts = owners.flatMap(([owner, own]) =>
    sources.map(({ table, at }, source) => {
      const isOfOrder = order_id === undefined ? sql`` : sql`order_id = ${order_id} and `
      // The sum keeps the index of the owner from being used in place of the order's.
      const isOfOwner = order_id === undefined ? sql`owner_id = ${owner}` : sql`owner_id + 0 = ${owner}`
      return sql`select * from (
        select ${sql.lit(source)} as source, id as number, ${sql.ref(at)} as at from ${sql.table(table)}
        where ${isOfOrder}${isOfOwner} and ${conditions[source]!} and amount > 0
          and ${withinRange(q, at, own, range)}${after ? sql` and ${isBefore(sql.ref(at), source, after)}` : sql``}
        order by ${sql.ref(at)} desc, id desc limit ${sql.lit(limit + 1)}) as part${sql.lit(source)}`
    }),
  )
  const { rows } = await sql<Place>`
    select source, number, at from (${sql.join(parts, sql` union all `)}) as moved
    order by at desc, source desc, number desc limit ${sql.lit(limit + 1)}`.execute(q)
  return rows
}

/** A row of a source. */
interface Place {
  source: number
  number: number
  at: number
}

const isBefore = (at: RawBuilder<unknown>, source: number, after: Place): RawBuilder<unknown> =>
  source === after.source
    ? sql`(${at}, id) < (${after.at}, ${after.number})`
    : source < after.source
      ? sql`${at} <= ${after.at}`
      : sql`${at} < ${after.at}`

const idOf = ({ source, number }: Place): string =>
  `${sources[source]!.prefix}_${number}${sources[source]!.suffix}`

/** The place of a row, which need not match the list any more: a refund may have failed since. */
async function placeOf(q: Queries, books: readonly HubBook[], cursor: string): Promise<Place> {
  const [, prefix, number, suffix = ''] = /^(dp|pay|re)_(\d{1,15})(_won)?$/.exec(cursor) ?? []
  const source = sources.findIndex((each) => each.prefix === prefix && each.suffix === suffix)
  if (source < 0 || books.length === 0) throw new ApiError('invalid_cursor')
  const { table, at } = sources[source]!
  const { rows } = await sql<Place & { hub_id: number; owner_id: number }>`
    select ${sql.lit(source)} as source, id as number, ${sql.ref(at)} as at, hub_id, owner_id
    from ${sql.table(table)} where id = ${Number(number)}`.execute(q)
  const [known] = rows
  if (!known || !books.some(({ hubId, ownerId }) => hubId === known.hub_id && ownerId === known.owner_id))
    throw new ApiError('invalid_cursor')
  return known
}

interface Money {
  number: number
  order_id: number
  hub_id: number
  processor: string
  currency: string
  reference: string | null
  completed_at: number
  amount: number
  tax: number
}

const ofOrder = sql`p.order_id, p.hub_id, o.currency, m.processor_ref as reference`
const details = {
  payments: (ids: readonly number[]) => sql<Money>`
    select p.id as number, ${ofOrder}, p.processor, p.updated_at as completed_at, p.amount,
      case when p.is_late = 1 then 0 else coalesce(o.tax_total, 0) end as tax
    from payments as p join orders as o on o.id = p.order_id
    left join money_operations as m on m.kind = 'payment' and m.subject = p.id
    where p.id in (${sql.join(ids)})`,
  refunds: (ids: readonly number[]) => sql<Money>`
    select r.id as number, ${ofOrder}, r.completed_at, r.amount, r.tax,
      case when r.settles is null then p.processor else ${sql.lit(EXTERNAL)} end as processor
    from refunds as r join payments as p on p.id = r.payment_id join orders as o on o.id = p.order_id
    left join money_operations as m on m.kind = 'refund' and m.subject = r.id
    where r.id in (${sql.join(ids)})`,
}

/** The rows of a page with their orders, and the processor's ids. */
async function describe(q: Queries, places: readonly Place[]): Promise<OwnerPayment[]> {
  const read = async (table: keyof typeof details): Promise<Map<number, Money>> => {
    const ids = places.filter(({ source }) => sources[source]!.table === table).map(({ number }) => number)
    const { rows } = ids.length === 0 ? { rows: [] } : await details[table](ids).execute(q)
    return new Map(rows.map((row) => [row.number, row]))
  }
  const known = { payments: await read('payments'), refunds: await read('refunds') }
  return places.map((place): OwnerPayment => {
    const { table, sign, type, status } = sources[place.source]!
    const { order_id, hub_id, currency, amount, tax, ...money } = known[table].get(place.number)!
    const isCard = money.processor !== 'wallet' && money.processor !== 'external'
    return {
      id: idOf(place),
      type,
      order_id,
      hub_id,
      created_at: timestamp(place.at),
      completed_at: timestamp(status === 'won' ? place.at : money.completed_at),
      status,
      processor: isCard ? 'card' : (money.processor as 'wallet' | 'external'),
      amount: sign * amount,
      tax: tax === 0 ? 0 : sign * tax,
      currency,
      reference: isCard ? money.reference : null,
    }
  })
}

/** Payments, refunds and disputes of an owner's orders, as a list or CSV. */
export const paymentReportHandlers = ({ db }: CloudContext): Handlers<'owner.payments.list'> => ({
  async 'owner.payments.list'(request) {
    const { query, credential } = request
    const books = await readableBooks(db.kysely, credential, query.hub_id)
    return answerList(request, paymentColumns, (page) =>
      readPayments(db.kysely, books, { ...query, ...page }),
    )
  },
})
