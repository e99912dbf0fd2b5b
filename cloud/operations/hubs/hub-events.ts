import { z } from 'zod'
import { wholeMs } from '../../../protocol/model/runtime.ts'
import type { HubHealthReport } from '../../../protocol/contract/owner-hubs.ts'
import { DeviceStatus } from '../../../protocol/mqtt/session.ts'
import { appendEvent } from '../../events/append-event.ts'
import { type HubState, hubStates, shownHubStatus } from '../../gateway/hub-state.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'
import { hubIsHeard, hubIsSilent } from '../alarms/hub-alarms.ts'
import { type BuiltDevices, readBuilt, readHubState, reportHealth } from './hub-health.ts'

const Told = z.object({ enabled: z.boolean(), status: DeviceStatus })

/** What is told of a hub's own state, beside whether it is online: by number what each bin and fridge is. */
const ToldState = z.object({
  /** Null before its first report. */
  acceptingOrders: z.boolean().nullable(),
  bins: z.record(z.string(), Told),
  fridges: z.record(z.string(), Told),
})
type ToldState = z.infer<typeof ToldState>

/** What has been told of a hub that nobody was told of. */
const NOTHING: ToldState = { acceptingOrders: null, bins: {}, fridges: {} }

interface Change {
  type: 'hub.online' | 'hub.offline' | 'bin.status_changed' | 'fridge.status_changed' | 'intake.changed'
  data: object
}

/**
 * Tells the owner what differs from what was told last: at each report of a hub, each change of what is wanted of it, and
 * when it has not been heard for long. Last in its transaction. Of an offline hub's devices nothing is told, as nothing is
 * known: `hub.offline` shows them all.
 */
export async function tellOfHub(tx: Tx, context: CloudContext, hubId: number): Promise<void> {
  if (!(await compare(tx.q, context, hubId)).differs) return
  // Others that tell of the hub wait here, and then see what was told.
  await tx.q
    .insertInto('hub_told')
    .values({ hub_id: hubId, online: 0, state: JSON.stringify(NOTHING) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  await tx.forUpdate(tx.q.selectFrom('hub_told').select('hub_id').where('hub_id', '=', hubId)).execute()
  const { changes, online, wasOnline, state } = await compare(tx.q, context, hubId)
  for (const change of changes) appendEvent(tx, context, { ...change, hubId })
  await tx.q
    .updateTable('hub_told')
    .set({ online: online ? 1 : 0, state: JSON.stringify(state) })
    .where('hub_id', '=', hubId)
    .execute()
  if (!online || wasOnline) return
  await hubIsHeard(tx, context, hubId)
  await schedule(tx, 'hub.silent', hubId, context.runtime.clock.now() + context.settings.onlineWithinMs + 1)
}

/** The same of several hubs: of those alone of which there is something to tell more than two statements are asked. */
export async function tellOfHubs(tx: Tx, context: CloudContext, hubIds: readonly number[]): Promise<void> {
  const { runtime, settings } = context
  const hubs = await hubRows(tx.q).where('hubs.id', 'in', hubIds).execute()
  const states = await hubStates(tx.q, hubIds, runtime.clock.now(), settings.onlineWithinMs)
  for (const hub of hubs) {
    const now = states.get(hub.id)
    if (now?.health && !compareHub(hub, now, NO_DEVICES).differs) continue
    await tellOfHub(tx, context, hub.id)
  }
}

const hubRows = (q: Queries) =>
  q
    .selectFrom('hubs')
    .leftJoin('hub_told', 'hub_told.hub_id', 'hubs.id')
    .select([
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

async function compare(q: Queries, context: CloudContext, hubId: number) {
  const hub = await hubRows(q).where('hubs.id', '=', hubId).executeTakeFirstOrThrow()
  const now = await readHubState(q, context, hubId)
  // A hub that has reported has named its devices: nothing more is asked for at each heartbeat.
  return compareHub(hub, now, now.health === null ? await readBuilt(q, hubId) : NO_DEVICES)
}

/** What was told of a hub beside what holds now. What is known for the first time is remembered, and no change. */
function compareHub(hub: HubRow, now: HubState, built: BuiltDevices) {
  const report = reportHealth(hub, now, built)
  const { online } = now
  const wasOnline = hub.online === 1
  const told = hub.state === null ? NOTHING : ToldState.parse(JSON.parse(hub.state))
  const bins = online ? report.bins.map((bin) => [bin.bin_number, bin] as const) : []
  const fridges = online ? report.fridges.map((fridge) => [fridge.fridge_number, fridge] as const) : []
  const state: ToldState = {
    acceptingOrders: intakeOf(hub, now) ?? told.acceptingOrders,
    bins: { ...told.bins, ...toldOf(bins) },
    fridges: { ...told.fridges, ...toldOf(fridges) },
  }
  const isIntakeNews = told.acceptingOrders !== null && told.acceptingOrders !== state.acceptingOrders
  const intake = {
    accepting_orders: state.acceptingOrders,
    hub_status: shownHubStatus({ ...hub, last_heard_at: now.lastHeardAt }),
  }
  const changes: Change[] = [
    ...(online === wasOnline ? [] : [presence(report)]),
    ...(isIntakeNews ? [{ type: 'intake.changed' as const, data: intake }] : []),
    ...changed(told.bins, bins).map((data) => ({ type: 'bin.status_changed' as const, data })),
    ...changed(told.fridges, fridges).map((data) => ({ type: 'fridge.status_changed' as const, data })),
  ]
  const differs = online !== wasOnline || JSON.stringify(state) !== JSON.stringify(told)
  return { differs, changes, online, wasOnline, state }
}

const presence = (report: HubHealthReport): Change => ({
  type: report.online ? 'hub.online' : 'hub.offline',
  data: report,
})

/** Whether orders are taken: the owner and, as far as it has said, the hub agree. Null while nobody knows the hub's word. */
const intakeOf = (hub: { accepting_orders: number }, { health }: HubState): boolean | null =>
  health === null ? null : hub.accepting_orders === 1 && health.accepting_orders

type Device = z.infer<typeof Told>
type Devices = readonly (readonly [number: number, device: Device])[]

const toldOf = (devices: Devices): Record<string, Device> =>
  Object.fromEntries(devices.map(([number, { enabled, status }]) => [number, { enabled, status }]))

const changed = (told: Readonly<Record<string, Device>>, devices: Devices): Device[] =>
  devices.flatMap(([number, device]) => {
    const before = told[number]
    const isSame = before?.enabled === device.enabled && before.status === device.status
    return before === undefined || isSame ? [] : [device]
  })

/**
 * Looks whether a hub that is said to be online has been heard since; the first look is made due when it comes online. One that
 * is silent for long is an alarm: silence counts while this process listens, as hubs have yet to find it after its start.
 */
export function hubWork(context: CloudContext): WorkKinds {
  const { db, runtime, settings } = context
  const listeningSince = runtime.clock.monotonic()
  return {
    'hub.silent': {
      async early(subjects) {
        const heardSince = runtime.clock.now() - settings.onlineWithinMs
        const online = await db.kysely
          .selectFrom('hub_sessions')
          .innerJoin('hub_told', 'hub_told.hub_id', 'hub_sessions.hub_id')
          .select(['hub_sessions.hub_id', 'hub_sessions.last_heard_at'])
          .where('hub_sessions.hub_id', 'in', subjects.map(Number))
          .where('hub_sessions.last_heard_at', '>=', heardSince)
          .where('hub_told.online', '=', 1)
          .execute()
        return new Map(
          online.map(({ hub_id, last_heard_at }) => [
            String(hub_id),
            last_heard_at + settings.onlineWithinMs + 1,
          ]),
        )
      },
      look: ({ subject }) =>
        db.transact(async (tx) => {
          const hubId = Number(subject)
          const hub = await tx.q.selectFrom('hubs').select('id').where('id', '=', hubId).executeTakeFirst()
          if (!hub) return done
          await tellOfHub(tx, context, hubId)
          const { online, lastHeardAt } = await readHubState(tx.q, context, hubId)
          if (online) return { next: lastHeardAt! + settings.onlineWithinMs + 1 }
          const now = runtime.clock.now()
          const listenedMs = runtime.clock.monotonic() - listeningSince
          const leftMs = Math.max(
            (lastHeardAt ?? now) + settings.hubSilentAlarmMs - now,
            Math.min(settings.hubReturnMs, settings.hubSilentAlarmMs) - listenedMs,
          )
          if (leftMs > 0) return { next: now + wholeMs(leftMs) }
          await hubIsSilent(tx, context, hubId, lastHeardAt!)
          return done
        }),
    },
  }
}
