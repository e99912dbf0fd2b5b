import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { HubHealthReport } from '../../../protocol/contract/owner-hubs.ts'
import { noBinOrders, type BinOrders, type OrdersByBin } from '../../commerce/orders/bin-room.ts'
import { hubState, type HubState } from '../../gateway/hub-state.ts'
import { timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

type HubRow = Pick<Selectable<Tables['hubs']>, 'id' | 'disabled_bins' | 'disabled_fridges'>

const Numbers = z.array(z.int())

export const readHubState = (
  q: Queries,
  { runtime, settings }: CloudContext,
  hubId: number,
): Promise<HubState> => hubState(q, hubId, runtime.clock.now(), settings.onlineWithinMs)

/** Numbers of the bins and fridges in a hub's layout, whether or not the hub has reported them. */
export interface BuiltDevices {
  bins: readonly number[]
  fridges: readonly number[]
}

export async function readBuilt(q: Queries, hubIds: readonly number[]): Promise<Map<number, BuiltDevices>> {
  const bins = await q
    .selectFrom('hub_bins')
    .select(['hub_id', 'bin'])
    .where('hub_id', 'in', hubIds)
    .orderBy('bin')
    .execute()
  const fridges = await q
    .selectFrom('hub_fridges')
    .select(['hub_id', 'fridge'])
    .where('hub_id', 'in', hubIds)
    .orderBy('fridge')
    .execute()
  const of = <R extends { hub_id: number }>(rows: readonly R[], hubId: number) =>
    rows.filter(({ hub_id }) => hub_id === hubId)
  return new Map(
    hubIds.map((hubId) => [
      hubId,
      {
        bins: of(bins, hubId).map(({ bin }) => bin),
        fridges: of(fridges, hubId).map(({ fridge }) => fridge),
      },
    ]),
  )
}

type Health = NonNullable<HubState['health']>
type Bin = Pick<Health['bins'][number], 'bin_number' | 'enabled' | 'status'>
type Fridge = Pick<Health['fridges'][number], 'fridge_number' | 'enabled' | 'status' | 'temperature'>

/** The devices that the hub has reported, and the unreported devices of its layout. */
function devicesOf(
  { health }: Pick<HubState, 'health'>,
  built: BuiltDevices,
): { bins: Bin[]; fridges: Fridge[] } {
  const { bins = [], fridges = [] } = health ?? {}
  const unheard = { enabled: true, status: 'offline', temperature: null } as const
  return {
    bins: [
      ...bins,
      ...built.bins
        .filter((number) => !bins.some(({ bin_number }) => bin_number === number))
        .map((bin_number) => ({ ...unheard, bin_number })),
    ].toSorted((a, b) => a.bin_number - b.bin_number),
    fridges: [
      ...fridges,
      ...built.fridges
        .filter((number) => !fridges.some(({ fridge_number }) => fridge_number === number))
        .map((fridge_number) => ({ ...unheard, fridge_number })),
    ].toSorted((a, b) => a.fridge_number - b.fridge_number),
  }
}

/**
 * O §2, hub health: the hub's last report, as far as it can still hold. The devices of an offline hub have
 * the status `offline`. The cloud itself decides which of them are enabled.
 */
export function reportHealth(
  hub: HubRow,
  state: Pick<HubState, 'online' | 'connected' | 'health' | 'lastHeardAt'>,
  built: BuiltDevices,
  orders: OrdersByBin,
): HubHealthReport {
  const { online, health } = state
  const { bins, fridges } = devicesOf(state, built)
  const disabled = {
    bins: Numbers.parse(JSON.parse(hub.disabled_bins)),
    fridges: Numbers.parse(JSON.parse(hub.disabled_fridges)),
  }
  const mainDoor = health?.doors.find(({ door }) => door === 'main')?.status
  return {
    hub_id: hub.id,
    online,
    last_heartbeat: timestampOrNull(state.lastHeardAt),
    bins: bins.map(({ bin_number, ...bin }) => ({
      bin_number,
      ...shownState(bin, online, disabled.bins.includes(bin_number)),
      ...shownOrders(orders.get(bin_number)),
    })),
    fridges: fridges.map(({ fridge_number, temperature, ...fridge }) => ({
      fridge_number,
      ...shownState(fridge, online, disabled.fridges.includes(fridge_number)),
      temperature: online && fridge.status !== 'offline' ? temperature : null,
    })),
    door_status: !online || mainDoor === undefined ? 'unknown' : doorStatus[mainDoor],
    network_status: online ? (state.connected ? 'connected' : 'degraded') : 'disconnected',
  }
}

/**
 * A device with its owner's setting and its hub's report. Until the hub has applied a disabling, the device
 * is shown as the hub will report it. So no reader sees a combination that neither of them ever intended.
 */
export function shownState(
  { enabled, status }: Pick<Bin, 'enabled' | 'status'>,
  online: boolean,
  isDisabled: boolean,
): Pick<Bin, 'enabled' | 'status'> {
  if (!online) return { enabled: !isDisabled, status: 'offline' }
  const isEnabled = enabled && !isDisabled
  return { enabled: isEnabled, status: isEnabled || status === 'offline' ? status : 'maintenance' }
}

const shownOrders = ({ occupied, order_id, reserved_for_order }: BinOrders = noBinOrders): BinOrders => ({
  occupied,
  order_id,
  reserved_for_order,
})

const doorStatus = { locked: 'closed', unlocked: 'closed', open: 'open', unknown: 'unknown' } as const
