import { sql } from 'kysely'
import type { Facing } from '../../../protocol/contract/owner-inventory.ts'
import { countProblem } from '../../../protocol/model/counting.ts'
import { type Location, locationKey } from '../../../protocol/model/location.ts'
import { holdsWithin } from '../../../protocol/model/runtime.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { awaitDelivery } from '../../gateway/outbox.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { refuseRetired, requireHub } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries } from '../../platform/store/database.ts'
import { missingPart, readRows } from './layout.ts'
import { countStock } from './shelf-stock.ts'
import { shownUnits } from './units.ts'

/** How long a request waits for the hub's report of a count, so that the next read shows it. */
const REPORT_MS = 1500

/** The rows of a hub with their contents, and counts of single rows. */
export const facingHandlers = (
  context: CloudContext,
): Handlers<'owner.facings.list' | 'owner.facings.count'> => ({
  'owner.facings.list': ({ query }) => listFacings(context.db.kysely, query.hub_id),
  async 'owner.facings.count'({ body, credential }) {
    const { db, runtime } = context
    const { hub_id: hubId, quantity, ...location } = body
    refuseRetired(await requireHub(db.kysely, credential, hubId))
    const missing = await missingPart(db.kysely, hubId, location)
    if (missing)
      throw new ApiError('invalid_location', undefined, undefined, [
        wrong(missing, `the hub has no such ${missing}`, location[missing]),
      ])
    const before = await readFacing(db.kysely, hubId, location)
    const problem = countProblem(quantity, before.capacity)
    if (problem !== undefined)
      throw new ApiError('invalid_quantity', undefined, undefined, [wrong('quantity', problem, quantity)])
    const place = await db.transact(async (tx) => {
      const facing = await tx
        .forUpdate(
          tx.q
            .selectFrom('facings')
            .select('product_id')
            .where((eb) => eb.and({ hub_id: hubId, ...location })),
        )
        .executeTakeFirst()
      if (!facing) throw new ApiError('product_not_found', 'Nothing has this place.')
      const count = { hubId, productId: facing.product_id, location, quantity }
      const { count_id, sent } = await countStock(tx, context, count)
      await appendAudit(tx.q, runtime, {
        actor: credential.actor,
        action: 'inventory.count_row',
        hubId,
        object: `row-${locationKey(location)}`,
        result: 'executed',
        detail: { from: before.quantity, to: quantity, count_id },
      })
      return sent
    })
    await awaitReport(context, hubId, location, place)
    return readFacing(db.kysely, hubId, location)
  },
})

const wrong = (field: string, why: string, input: number) => ({
  loc: ['body', field],
  msg: `Value error, ${why}`,
  type: 'value_error' as const,
  input,
})

/** Waits for a connected hub, which unblocks the row when it applies the count, and reports that. */
async function awaitReport(
  context: CloudContext,
  hubId: number,
  location: Location,
  place: Awaited<ReturnType<typeof countStock>>['sent'],
): Promise<void> {
  const { db, runtime, settings } = context
  const { connected } = await hubState(db.kysely, hubId, runtime.clock.now(), settings.onlineWithinMs)
  if (place === null || !connected) return
  if (!(await awaitDelivery(context, hubId, place, settings.commandTimeoutMs))) return
  await holdsWithin(runtime.clock, REPORT_MS, async () => {
    const pending = await db.kysely
      .selectFrom('stock_counts')
      .select('count_id')
      .where((eb) => eb.and({ hub_id: hubId, ...location }))
      .where('settled_at', 'is', null)
      .executeTakeFirst()
    return pending === undefined && !(await readFacing(db.kysely, hubId, location)).blocked
  })
}

async function readFacing(q: Queries, hubId: number, location: Location): Promise<Facing> {
  const all = await listFacings(q, hubId)
  return all.find((facing) => locationKey(facing) === locationKey(location))!
}

/** All rows of a hub, in the order of their locations. */
async function listFacings(q: Queries, hubId: number): Promise<Facing[]> {
  const facings = await q
    .selectFrom('facings')
    .select(['cabinet', 'shelf', 'row', 'product_id', 'counted_at', shownUnits.as('quantity')])
    .select(
      sql<number | null>`(select max(c.counted_at) from stock_counts as c
        where c.hub_id = facings.hub_id and c.product_id = facings.product_id and c.settled_at is null
          and (c.cabinet is null or (c.cabinet = facings.cabinet and c.shelf = facings.shelf and c."row" = facings."row")))`.as(
        'typed_at',
      ),
    )
    .where('hub_id', '=', hubId)
    .execute()
  const blocked = await q
    .selectFrom('blocked_places')
    .select(['cabinet', 'shelf', 'row', 'reason'])
    .where('hub_id', '=', hubId)
    // The hub's reason before the owner's; a cabinet's before a row's.
    .orderBy('source')
    .orderBy('shelf')
    .execute()
  const there = new Map(facings.map((facing) => [locationKey(facing), facing]))
  return (await readRows(q, hubId)).map(({ capacity, ...location }) => {
    const facing = there.get(locationKey(location))
    const reason = blocked.find(
      ({ cabinet, shelf, row }) =>
        cabinet === location.cabinet && (shelf === 0 || (shelf === location.shelf && row === location.row)),
    )?.reason
    const times = [facing?.counted_at, facing?.typed_at].filter((at) => at !== null && at !== undefined)
    return {
      ...location,
      product_id: facing?.product_id ?? null,
      quantity: Math.max(0, facing?.quantity ?? 0),
      capacity,
      blocked: reason !== undefined,
      blocked_reason: reason ?? null,
      counted_at: timestampOrNull(times.length > 0 ? Math.max(...times) : null),
    }
  })
}
