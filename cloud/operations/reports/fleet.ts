import type { FleetHub } from '../../../protocol/contract/owner-reports.ts'
import { incompleteOf } from '../../commerce/analytics/totals.ts'
import { readHubLoad, roomOf } from '../../commerce/orders/bin-room.ts'
import { hubStates, shownHubStatus, type HubState } from '../../gateway/hub-state.ts'
import { readVitals } from '../../gateway/heartbeats.ts'
import { ApiError } from '../../platform/api-error.ts'
import { localDay } from '../../platform/calendar/zone.ts'
import { timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { isPlaceOfHub, reachableHubs, type HubWithContact } from '../../platform/credentials/hub-access.ts'
import { reply, type Handlers } from '../../platform/http/handler.ts'
import { pageOf } from '../../platform/http/lists.ts'
import type { Queries } from '../../platform/store/database.ts'

/** The hubs of a credential, each with its state, alarms and sales of today. */
export const fleetHandlers = (context: CloudContext): Handlers<'owner.fleet.list'> => ({
  async 'owner.fleet.list'({ query: { hub_id, cursor, limit }, credential }) {
    const q = context.db.kysely
    const reached = await reachableHubs(q, credential)
    const own = reached.filter(({ id }) => hub_id === undefined || id === hub_id)
    const isPlace =
      cursor === undefined ||
      (/^\d{1,10}$/.test(cursor) && (await isPlaceOfHub(q, credential, Number(cursor))))
    if (!isPlace) throw new ApiError('invalid_cursor')
    const hubs = own.filter(({ id }) => cursor === undefined || id > Number(cursor)).slice(0, limit + 1)
    const { furtherHubs = [] } = credential
    const showsSales = (id: number): boolean => furtherHubs === '*' || furtherHubs.includes(id)
    const rows = await readFleet(context, hubs, showsSales)
    const headers = await incompleteOf(q, hubs.map(({ id }) => id).filter(showsSales))
    return reply(
      pageOf(rows, limit, (last) => String(last.hub_id)),
      { headers },
    )
  },
})

async function readFleet(
  { db, runtime, settings }: CloudContext,
  hubs: readonly HubWithContact[],
  showsSales: (hubId: number) => boolean,
): Promise<FleetHub[]> {
  if (hubs.length === 0) return []
  const q = db.kysely
  const now = runtime.clock.now()
  const ids = hubs.map(({ id }) => id)
  const states = await hubStates(q, ids, now, settings.onlineWithinMs)
  const alarms = await q
    .selectFrom('alarms')
    .innerJoin('hubs', (join) =>
      join.onRef('hubs.id', '=', 'alarms.hub_id').onRef('hubs.owner_id', '=', 'alarms.owner_id'),
    )
    .select(['hub_id', 'severity', (eb) => eb.fn.countAll<number>().as('count')])
    .where('hub_id', 'in', ids)
    .where('cleared_at', 'is', null)
    .groupBy(['hub_id', 'severity'])
    .execute()
  const vitals = await readVitals(q, ids)
  const rows: FleetHub[] = []
  for (const hub of hubs) {
    const reported = vitals.get(hub.id)
    const state = states.get(hub.id)!
    const open = (severity: string): number =>
      alarms.find((row) => row.hub_id === hub.id && row.severity === severity)?.count ?? 0
    rows.push({
      hub_id: hub.id,
      name: hub.name,
      hub_status: shownHubStatus(hub),
      online: state.online,
      last_heartbeat: timestampOrNull(state.lastHeardAt),
      version: state.version,
      alarms: { critical: open('critical'), warning: open('warning'), info: open('info') },
      sales_today: showsSales(hub.id) ? await salesToday(q, hub, now) : null,
      free_bins: state.online ? await freeBins(q, hub) : 0,
      warmest_fridge: warmestOf(state),
      ...(reported && { vitals: reported }),
    })
  }
  return rows
}

async function salesToday(q: Queries, hub: HubWithContact, now: number): Promise<FleetHub['sales_today']> {
  const today = await q
    .selectFrom('sales_days')
    .select(['orders as total_orders', 'units as units_sold', 'revenue as gross_revenue'])
    .where('hub_id', '=', hub.id)
    .where('owner_id', '=', hub.owner_id)
    .where('part', '=', 'hub')
    .where('day', '=', localDay(hub.timezone, now))
    .executeTakeFirst()
  return today ?? { total_orders: 0, units_sold: 0, gross_revenue: 0 }
}

async function freeBins(q: Queries, hub: HubWithContact): Promise<number> {
  const { bins } = roomOf(await readHubLoad(q, { hubId: hub.id }), JSON.parse(hub.disabled_bins) as number[])
  return Math.max(0, bins.free)
}

function warmestOf({ online, health }: HubState): FleetHub['warmest_fridge'] {
  const read = (online ? (health?.fridges ?? []) : []).flatMap(({ fridge_number, status, temperature }) =>
    temperature === null || status === 'offline' ? [] : [{ fridge: fridge_number, temperature }],
  )
  return read.toSorted((a, b) => b.temperature - a.temperature)[0] ?? null
}
