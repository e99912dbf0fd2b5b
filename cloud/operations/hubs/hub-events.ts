import { sql } from 'kysely'
import { z } from 'zod'
import { wholeMs } from '../../../protocol/model/runtime.ts'
import type { HubHealthReport } from '../../../protocol/contract/owner-hubs.ts'
import { DeviceStatus, type HubHealth } from '../../../protocol/model/hub-health.ts'
import { readBinOrders, type OrdersByBin } from '../../commerce/orders/bin-room.ts'
import { appendEvent } from '../../events/append-event.ts'
import { lockPublished, UNPUBLISHED } from '../../events/derive-of-hub.ts'
import type { HeardHub } from '../../gateway/domain.ts'
import { type HubState, hubStates, shownHubStatus } from '../../gateway/hub-state.ts'
import { stopsSelling } from '../../gateway/stalls.ts'
import { uninterrupted } from '../../platform/listening.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { recordset } from '../../platform/store/recordset.ts'
import { ensureScheduled, schedule, unschedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'
import { hubIsSilent, hubsHaveReported, storageIs } from '../alarms/hub-alarms.ts'
import { type BuiltDevices, readBuilt, readHubState, reportHealth } from './hub-health.ts'

const PublishedDevice = z.object({ enabled: z.boolean(), status: DeviceStatus })

/** A hub's published state, apart from whether it is online: its bins and fridges by number. */
const PublishedState = z.object({
  /** Null before its first report. */
  acceptingOrders: z.boolean().nullable(),
  bins: z.record(z.string(), PublishedDevice),
  fridges: z.record(z.string(), PublishedDevice),
  /** The reason of the storage failure that the hub reports. */
  storage: z.string().nullable().default(null),
})
type PublishedState = z.infer<typeof PublishedState>

interface Change {
  type: 'hub.online' | 'hub.offline' | 'bin.status_changed' | 'fridge.status_changed' | 'intake.changed'
  data: object
}

/** Publishes changes of one hub. */
export const publishHubChange = (tx: Tx, context: CloudContext, hubId: number): Promise<void> =>
  publishHubChanges(tx, context, [{ hubId, health: null }])

/**
 * Publishes to owners the differences from the last publication: at each report of a hub, at each change of
 * its desired state, and after a long silence. Must come last in its transaction. The devices of an offline
 * hub are unknown, so none is published: `hub.offline` covers them all.
 */
export async function publishHubChanges(
  tx: Tx,
  context: CloudContext,
  heard: readonly HeardHub[],
): Promise<void> {
  const healths = new Map(heard.map(({ hubId, health }) => [hubId, health]))
  const hubs = await hubRows(tx.q)
    .where('hubs.id', 'in', [...healths.keys()])
    .execute()
  const odd = hubs.filter((hub) => !isPublished(hub, healths.get(hub.id) ?? null))
  const differing = await differences(tx.q, context, odd)
  if (differing.length === 0) return
  const hubIds = differing.map(({ hub }) => hub.id)
  // Concurrent publications of a hub wait here, and then read the published state.
  await lockPublished(tx, hubIds)
  const again = await hubRows(tx.q).where('hubs.id', 'in', hubIds).execute()
  await note(tx, context, await differences(tx.q, context, again))
}

/** Appends hubs' changes to their owners' events, and stores the published state. */
async function note(tx: Tx, context: CloudContext, news: readonly Difference[]): Promise<void> {
  if (news.length === 0) return
  for (const { hub, changes } of news)
    for (const change of changes) appendEvent(tx, context, { ...change, hubId: hub.id })
  const source = recordset(
    tx.kind,
    { of: 'int', is_online: 'int', published: 'text' },
    news.map(({ hub, online, state }) => ({
      of: hub.id,
      is_online: online ? 1 : 0,
      published: JSON.stringify(state),
    })),
  )
  await sql`update hub_told set online = is_online, state = published from ${source} where hub_id = of`.execute(
    tx.q,
  )
  for (const { hub, health, isStorageNews } of news)
    if (isStorageNews) await storageIs(tx, context, hub.id, health?.storage)
  const back = news.filter(({ online, wasOnline }) => online && !wasOnline).map(({ hub }) => hub.id)
  if (back.length > 0) {
    await hubsHaveReported(tx, context, back)
    // The row waits for the alarm of the silence that has ended: the next silence would be found at that time only.
    await unschedule(tx, 'hub.silent', back)
  }
  const gone = news.filter(({ online, wasOnline }) => !online && wasOnline).map(({ hub }) => hub.id)
  await schedule(tx, 'hub.silent', gone, context.runtime.clock.now())
}

const hubRows = (q: Queries) =>
  q
    .selectFrom('hubs')
    .leftJoin('hub_told', 'hub_told.hub_id', 'hubs.id')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
    .select([
      'hub_sessions.stalled',
      'hubs.id',
      'hubs.hub_status',
      'hubs.accepting_orders',
      'hubs.disabled_bins',
      'hubs.disabled_fridges',
      'hub_told.online',
      'hub_told.state',
    ])
type HubRow = Awaited<ReturnType<ReturnType<typeof hubRows>['execute']>>[number]

const NO_DEVICES: BuiltDevices = { bins: [], fridges: [] }
const NO_ORDERS: OrdersByBin = new Map()

/**
 * Whether a hub's report equals its published state, as at nearly every heartbeat. It compares the stored
 * JSON text without parsing it.
 */
function isPublished(hub: HubRow, health: HubHealth | null): boolean {
  if (health === null || hub.online !== 1) return false
  const now = { online: true, connected: true, health, lastHeardAt: null }
  const { bins, fridges } = devicesIn(reportHealth(hub, now, NO_DEVICES, NO_ORDERS))
  const state: PublishedState = {
    acceptingOrders: intakeOf(hub, now),
    bins: publishedOf(bins),
    fridges: publishedOf(fridges),
    storage: health.storage?.reason ?? null,
  }
  return JSON.stringify(state) === hub.state
}

/** The state of an offline hub's devices is unknown. */
const devicesIn = ({ online, bins, fridges }: HubHealthReport): Record<'bins' | 'fridges', Devices> => ({
  bins: online ? bins.map((bin) => [bin.bin_number, bin] as const) : [],
  fridges: online ? fridges.map((fridge) => [fridge.fridge_number, fridge] as const) : [],
})

type Difference = ReturnType<typeof compareHub>

/** The hubs with changes to publish. */
async function differences(
  q: Queries,
  { runtime, settings }: CloudContext,
  hubs: readonly HubRow[],
): Promise<Difference[]> {
  if (hubs.length === 0) return []
  const hubIds = hubs.map(({ id }) => id)
  const states = await hubStates(q, hubIds, runtime.clock.now(), settings.onlineWithinMs)
  const silent = hubIds.filter((hubId) => states.get(hubId)!.health === null)
  // A hub that has reported has named its devices: its layout is not needed.
  const built = silent.length > 0 ? await readBuilt(q, silent) : new Map<number, BuiltDevices>()
  const orders = await readBinOrders(q, hubIds)
  return hubs
    .map((hub) =>
      compareHub(hub, states.get(hub.id)!, built.get(hub.id) ?? NO_DEVICES, orders.get(hub.id) ?? NO_ORDERS),
    )
    .filter(({ differs }) => differs)
}

/**
 * Compares a hub's published state with its current state. A value that becomes known for the first time is
 * stored, and is not a change.
 */
function compareHub(hub: HubRow, now: HubState, built: BuiltDevices, orders: OrdersByBin) {
  const report = reportHealth(hub, now, built, orders)
  const { online } = now
  const wasOnline = hub.online === 1
  const published: PublishedState =
    hub.state === null ? UNPUBLISHED : PublishedState.parse(JSON.parse(hub.state))
  const { bins, fridges } = devicesIn(report)
  const state: PublishedState = {
    acceptingOrders: intakeOf(hub, now) ?? published.acceptingOrders,
    bins: { ...published.bins, ...publishedOf(bins) },
    fridges: { ...published.fridges, ...publishedOf(fridges) },
    // A hub's last report holds until its next one.
    storage: now.health === null ? published.storage : (now.health.storage?.reason ?? null),
  }
  const isStorageNews = state.storage !== published.storage
  const isIntakeNews =
    published.acceptingOrders !== null && published.acceptingOrders !== state.acceptingOrders
  const intake = {
    accepting_orders: state.acceptingOrders,
    hub_status: shownHubStatus({ ...hub, last_heard_at: now.lastHeardAt }),
  }
  const changes: Change[] = [
    ...(online === wasOnline ? [] : [presence(report)]),
    ...(isIntakeNews ? [{ type: 'intake.changed' as const, data: intake }] : []),
    ...changed(published.bins, bins).map((data) => ({ type: 'bin.status_changed' as const, data })),
    ...changed(published.fridges, fridges).map((data) => ({ type: 'fridge.status_changed' as const, data })),
  ]
  const differs = online !== wasOnline || JSON.stringify(state) !== JSON.stringify(published)
  return { hub, differs, changes, online, wasOnline, state, isStorageNews, health: now.health }
}

const presence = (report: HubHealthReport): Change => ({
  type: report.online ? 'hub.online' : 'hub.offline',
  data: report,
})

/**
 * Whether a hub takes orders: the owner, the streams and the hub's own report (if any) agree. Null while the
 * hub has not reported.
 */
const intakeOf = (
  hub: Pick<HubRow, 'accepting_orders' | 'stalled'>,
  { health }: Pick<HubState, 'health'>,
): boolean | null =>
  health === null ? null : hub.accepting_orders === 1 && !stopsSelling(hub.stalled) && health.accepting_orders

type Device = z.infer<typeof PublishedDevice>
type Devices = readonly (readonly [number: number, device: Device])[]

const publishedOf = (devices: Devices): Record<string, Device> =>
  Object.fromEntries(devices.map(([number, { enabled, status }]) => [number, { enabled, status }]))

const changed = (published: Readonly<Record<string, Device>>, devices: Devices): Device[] =>
  devices.flatMap(([number, device]) => {
    const before = published[number]
    const isSame = before?.enabled === device.enabled && before.status === device.status
    return before === undefined || isSame ? [] : [device]
  })

/** Minimum time between two searches for silent hubs, in milliseconds. */
const SEARCH_PAUSE_MS = 1000

/**
 * `hub.unheard` finds the hubs that are published as online and have sent nothing since. One row of due work covers all
 * hubs: it is due when the hub with the oldest message would count as offline. `hub.silent` publishes that one hub is
 * offline; a long silence raises an alarm. Silence counts only while this process listens (`platform/listening.ts`).
 */
export function hubWork(context: CloudContext): WorkKinds {
  const { db, runtime, settings } = context
  const listening = context.listening ?? uninterrupted(runtime.clock)
  return {
    'hub.unheard': {
      recurring: ['all'],
      run: () =>
        db.transact(async (tx) => {
          const now = runtime.clock.now()
          const { unheard, oldest } = await findUnheard(tx.q, now - settings.onlineWithinMs)
          await ensureScheduled(tx.q, 'hub.silent', unheard, now)
          tx.workDue(now)
          return { next: Math.max((oldest ?? now) + settings.onlineWithinMs + 1, now + SEARCH_PAUSE_MS) }
        }),
    },
    'hub.silent': {
      run: ({ subject }) =>
        db.transact(async (tx) => {
          const hubId = Number(subject)
          const hub = await tx.q
            .selectFrom('hubs')
            .select(['id', 'name'])
            .where('id', '=', hubId)
            .executeTakeFirst()
          if (!hub) return done
          // A transaction that records a report of the hub holds this row: later reads return the hub's
          // current state.
          await lockPublished(tx, [hubId])
          const { online, hasLeft, lastHeardAt } = await readHubState(tx.q, context, hubId)
          const now = runtime.clock.now()
          const listenedMs = listening.forMs()
          // Its heartbeats may have come while this process was not listening: it does not count as offline
          // yet.
          const silentMs = Math.min(settings.onlineWithinMs, settings.hubReturnMs) - listenedMs
          if (!online && !hasLeft && silentMs > 0) return { next: now + wholeMs(silentMs) }
          await publishHubChange(tx, context, hubId)
          if (online) return done
          const leftMs = Math.max(
            (lastHeardAt ?? now) + settings.hubSilentAlarmMs - now,
            Math.min(settings.hubReturnMs, settings.hubSilentAlarmMs) - listenedMs,
          )
          if (leftMs > 0) return { next: now + wholeMs(leftMs) }
          // A hub without any report is not silent: it has yet to be connected.
          if (lastHeardAt !== null) await hubIsSilent(tx, context, hub, lastHeardAt)
          return done
        }),
    },
  }
}

/** Among hubs that are published as online: those without a message since then, and the oldest message of the others. */
async function findUnheard(q: Queries, since: number): Promise<{ unheard: number[]; oldest: number | null }> {
  const online = q
    .selectFrom('hub_told')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hub_told.hub_id')
    .where('hub_told.online', '=', 1)
  const unheard = await online
    .select('hub_told.hub_id')
    .where((eb) =>
      eb.or([eb('hub_sessions.last_heard_at', 'is', null), eb('hub_sessions.last_heard_at', '<', since)]),
    )
    .execute()
  const heard = await online
    .select((eb) => eb.fn.min('hub_sessions.last_heard_at').as('oldest'))
    .where('hub_sessions.last_heard_at', '>=', since)
    .executeTakeFirst()
  return { unheard: unheard.map(({ hub_id }) => hub_id), oldest: heard?.oldest ?? null }
}
