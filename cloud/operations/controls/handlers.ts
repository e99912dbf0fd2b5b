import { z } from 'zod'
import type { FridgeSide } from '../../../protocol/model/hardware.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CommandBody } from '../../../protocol/model/hub-commands.ts'
import { BinHealth, DoorHealth } from '../../../protocol/model/hub-health.ts'
import { readBinOrders } from '../../commerce/orders/bin-orders.ts'
import { confirmExternal } from '../../commerce/payments/confirm.ts'
import type { CommandRequest } from '../../gateway/commands.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestampOrNull } from '../../platform/calendar/timestamps.ts'
import { shownState } from '../hubs/hub-health.ts'
import { requireHub } from '../../platform/credentials/hub-access.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import {
  binOf,
  type BinRequest,
  type ControlServices,
  type FridgeRequest,
  hardwareError,
  ok,
  requireBin,
  sendAudited,
} from './control.ts'
import { requireFridge } from '../hubs/require-fridge.ts'

type OpenRequest = BinRequest & { query: { order_id?: number | undefined; confirm: boolean } }

/** O §4.6. */
export function controlHandlers(
  services: ControlServices,
): Handlers<
  | 'owner.controls.open_bin'
  | 'owner.controls.close_bin'
  | 'owner.controls.raise_bin'
  | 'owner.controls.lower_bin'
  | 'owner.controls.get_bin_status'
  | 'owner.controls.cycle_bin'
  | 'owner.controls.reconnect_bin'
> {
  const { context } = services
  const { runtime, db } = context

  const send = ({ query, credential, requestName }: BinRequest, body: CommandBody) =>
    execute(services, { hubId: query.hub, body, actor: credential.actor, requestName }, 'bin_not_found')

  async function moveDoor(name: 'open_bin' | 'close_bin', request: BinRequest) {
    const { data, ...rest } = await send(request, { name, bin: request.query.bin })
    return ok(200, { ...rest, door: BinHealth.shape.door.catch('unknown').parse(data['door']) })
  }

  async function moveLift(name: 'raise_bin' | 'lower_bin', request: BinRequest) {
    const { data, ...rest } = await send(request, { name, bin: request.query.bin })
    return ok(200, { ...rest, lift: BinHealth.shape.lift.catch('unknown').parse(data['lift']) })
  }

  /**
   * The API key's holder has taken the money for the order that the bin is reserved for. Null if no order waits for that,
   * or the caller may only open the door.
   */
  async function confirm({ query, credential }: OpenRequest) {
    const { hub: hubId, bin, order_id: expected } = query
    const { keyPrefix, actor } = credential
    const reservedFor = await reservedOrder(db.kysely, hubId, bin)
    if (expected !== undefined && expected !== reservedFor)
      throw new ApiError('order_state_conflict', `Bin ${bin} is not reserved for order ${expected}.`, {
        reserved_for_order: reservedFor,
      })
    // Only a key stands for an integrator who takes money; a person with a token opens doors.
    if (keyPrefix === null || !query.confirm || reservedFor === null) return null
    const command_id = uuidv7(runtime)
    const orderId = await confirmExternal(context, {
      hubId,
      bin,
      orderId: reservedFor,
      key: keyPrefix,
      audit: { actor, detail: { command_id } },
    })
    if (orderId === null) {
      if (expected !== undefined) throw new ApiError('order_state_conflict')
      return null
    }
    return ok(202, { command_id, order_id: orderId, processing_status: OrderStatus.QUEUED })
  }

  return {
    async 'owner.controls.open_bin'(request) {
      await requireBin(context, request.query)
      return (await confirm(request)) ?? moveDoor('open_bin', request)
    },
    async 'owner.controls.close_bin'(request) {
      await requireBin(context, request.query)
      return moveDoor('close_bin', request)
    },
    async 'owner.controls.raise_bin'(request) {
      await requireBin(context, request.query)
      return moveLift('raise_bin', request)
    },
    async 'owner.controls.lower_bin'(request) {
      await requireBin(context, request.query)
      return moveLift('lower_bin', request)
    },
    async 'owner.controls.cycle_bin'(request) {
      const { bin, num_cycles: cycles } = request.query
      await requireBin(context, request.query)
      const { data } = await send(request, { name: 'cycle_bin', bin, cycles })
      return ok(200, { cycles_completed: z.int().catch(cycles).parse(data['cycles_completed']) })
    },
    async 'owner.controls.reconnect_bin'(request) {
      await requireBin(context, request.query)
      const { data: _, ...rest } = await send(request, { name: 'reconnect_bin', bin: request.query.bin })
      return ok(200, { ...rest, connected: true as const })
    },
    async 'owner.controls.get_bin_status'(request) {
      const state = await requireBin(context, request.query)
      const { query, credential } = request
      const body = { name: 'get_bin_status', bin: query.bin } as const
      const outcome = await sendAudited(services, { hubId: query.hub, body, actor: credential.actor })
      const show = async (bin: BinState, reportedAt: number | null) => {
        const orderId = await orderNumber(db.kysely, query.hub, bin.order_id)
        const reservedFor = await reservedOrder(db.kysely, query.hub, query.bin)
        return ok(200, binStatus(bin, orderId, reservedFor, reportedAt))
      }
      if (outcome.kind !== 'executed' && outcome.kind !== 'offline')
        throw hardwareError(outcome, 'bin_not_found')
      const hub = await requireHub(db.kysely, credential, query.hub)
      const isDisabled = (JSON.parse(hub.disabled_bins) as number[]).includes(query.bin)
      if (outcome.kind === 'executed') {
        const bin = live(outcome.data)
        return show({ ...bin, ...shownState(bin, true, isDisabled) }, runtime.clock.now())
      }
      const known = state.health ? binOf(state.health, query.bin) : undefined
      const bin = known ?? unheard(query.bin, !isDisabled)
      return show({ ...bin, ...shownState(bin, false, isDisabled) }, state.healthAt)
    },
  }
}

/** Has a hub execute a command; throws what is answered where it did not. `absent`: where it has no such device. */
async function execute(
  services: ControlServices,
  request: CommandRequest,
  absent: 'bin_not_found' | 'fridge_not_found',
) {
  const outcome = await sendAudited(services, request)
  if (outcome.kind !== 'executed') throw hardwareError(outcome, absent)
  const { commandId, durationMs, data } = outcome
  return { command_id: commandId, duration_ms: Math.round(durationMs), data }
}

/** The order for which an integrator's claim reserves a bin. */
const reservedOrder = async (q: Queries, hubId: number, bin: number): Promise<number | null> =>
  (await readBinOrders(q, [hubId])).get(hubId)?.get(bin)?.reserved_for_order ?? null

/** What the hub answered; it is its fault if that is no status. */
function live(data: Record<string, unknown>): BinHealth {
  const bin = BinHealth.safeParse(data)
  if (!bin.success) throw new ApiError('hardware_error', undefined, { reason: 'fault' })
  return bin.data
}

/** What people call an order of which a hub speaks; null where it is not known here. */
async function orderNumber(q: Queries, hubId: number, uuid: string | null): Promise<number | null> {
  if (uuid === null) return null
  const order = await q
    .selectFrom('orders')
    .select('id')
    .where('uuid', '=', uuid)
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  return order?.id ?? null
}

type BinState = Omit<BinHealth, 'capacity' | 'occupied'>

function binStatus(
  bin: BinState,
  order_id: number | null,
  reserved_for_order: number | null,
  reportedAt: number | null,
) {
  const { bin_number, enabled, status, door, lift, fault_code } = bin
  return {
    bin_number,
    enabled,
    status,
    door,
    lift,
    fault_code,
    order_id,
    reserved_for_order,
    reported_at: timestampOrNull(reportedAt),
  }
}

/** A bin of a hub that has never been heard. */
function unheard(bin_number: number, enabled: boolean): BinState {
  return {
    bin_number,
    enabled,
    status: 'offline',
    door: 'unknown',
    lift: 'unknown',
    fault_code: null,
    order_id: null,
  }
}

/** O §4.6: what moves a fridge's locks, or its serial line. */
export function fridgeHandlers(
  services: ControlServices,
): Handlers<
  | 'owner.controls.open_fridge_left'
  | 'owner.controls.open_fridge_right'
  | 'owner.controls.open_fridge_middle'
  | 'owner.controls.close_fridge'
  | 'owner.controls.reconnect_fridge'
> {
  async function send({ query, credential, requestName }: FridgeRequest, body: CommandBody) {
    await requireFridge(services.context, query)
    const request = { hubId: query.hub, body, actor: credential.actor, requestName }
    return execute(services, request, 'fridge_not_found')
  }

  async function moveLocks(request: FridgeRequest, body: CommandBody) {
    const { data, ...rest } = await send(request, body)
    return ok(200, { ...rest, door: DoorHealth.shape.status.catch('unknown').parse(data['door']) })
  }

  const open = (request: FridgeRequest, side: FridgeSide) =>
    moveLocks(request, { name: 'open_fridge', fridge: request.query.fridge, side })

  return {
    'owner.controls.open_fridge_left': (request) => open(request, 'left'),
    'owner.controls.open_fridge_right': (request) => open(request, 'right'),
    'owner.controls.open_fridge_middle': (request) => open(request, 'middle'),
    'owner.controls.close_fridge': (request) =>
      moveLocks(request, { name: 'close_fridge', fridge: request.query.fridge }),
    async 'owner.controls.reconnect_fridge'(request) {
      const { data: _, ...rest } = await send(request, {
        name: 'reconnect_fridge',
        fridge: request.query.fridge,
      })
      return ok(200, { ...rest, connected: true as const })
    },
  }
}
