import { z } from 'zod'
import {
  type AnsweringCommand,
  type CommandAnswer,
  commandErrors,
  type RoutedCommand,
  routedCommands,
} from '../../../protocol/contract/command-route.ts'
import type { FridgeSide } from '../../../protocol/model/hardware.ts'
import { type CommandBody, commandRow } from '../../../protocol/model/hub-commands.ts'
import { BinHealth } from '../../../protocol/model/hub-health.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { readBinOrders } from '../../commerce/orders/bin-room.ts'
import { confirmExternal } from '../../commerce/payments/confirm.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestampOrNull } from '../../platform/calendar/days.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { requireHub } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries } from '../../platform/store/database.ts'
import { shownState } from '../hubs/hub-health.ts'
import { requireFridge } from '../hubs/require-fridge.ts'
import {
  binOf,
  type BinRequest,
  type ControlServices,
  hardwareError,
  ok,
  requireBin,
  sendAudited,
} from './control.ts'

type OpenRequest = BinRequest & { query: { order_id?: number | undefined; confirm: boolean } }

/** O §4.6: routes that send a command to the hub. Most of them follow from the command's row in the table. */
export function controlHandlers(
  services: ControlServices,
): Handlers<
  | `owner.controls.${RoutedCommand | `open_fridge_${FridgeSide}`}`
  | 'owner.controls.cycle_bin'
  | 'owner.controls.get_bin_status'
> {
  const { context } = services
  const { runtime, db } = context

  const unlock = (side: FridgeSide) => (request: ControlRequest) =>
    sendCommand(services, 'open_fridge', request, { side })

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

  const routed = routedCommands.map((name) => [
    `owner.controls.${name}`,
    (request: ControlRequest) => sendCommand(services, name, request),
  ])

  return {
    ...(Object.fromEntries(routed) as Handlers<`owner.controls.${RoutedCommand}`>),
    async 'owner.controls.open_bin'(request) {
      await requireBin(context, request.query)
      return (await confirm(request)) ?? perform(services, 'open_bin', request)
    },
    'owner.controls.open_fridge_left': unlock('left'),
    'owner.controls.open_fridge_middle': unlock('middle'),
    'owner.controls.open_fridge_right': unlock('right'),
    async 'owner.controls.cycle_bin'(request) {
      const { num_cycles: cycles } = request.query
      await requireBin(context, request.query)
      const { data } = await execute(services, request, { name: 'cycle_bin', bin: request.query.bin, cycles })
      return ok(200, { cycles_completed: z.int().catch(cycles).parse(data['cycles_completed']) })
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

/** A request for a route of a command: its query has the command's parameters, a place as three fields. */
interface ControlRequest {
  requestName: string | undefined
  query: { hub: number; bin?: number; fridge?: number; cabinet?: number; shelf?: number; row?: number }
  credential: OwnerCredential
}

/** Has a hub execute a command if it has the devices that the query names. */
async function sendCommand<N extends AnsweringCommand>(
  services: ControlServices,
  name: N,
  request: ControlRequest,
  fixed?: Record<string, unknown>,
): Promise<ControlAnswer<N>> {
  const { hub, bin, fridge } = request.query
  if (bin !== undefined) await requireBin(services.context, { hub, bin })
  if (fridge !== undefined) await requireFridge(services.context, { hub, fridge })
  return perform(services, name, request, fixed)
}

type ControlAnswer<N extends AnsweringCommand> = ReturnType<typeof ok<200, z.output<CommandAnswer<N>>>>

/** Answers with the command's id, its result and its duration. `fixed`: parameters that the route names, not the query. */
async function perform<N extends AnsweringCommand>(
  services: ControlServices,
  name: N,
  request: ControlRequest,
  fixed: Record<string, unknown> = {},
): Promise<ControlAnswer<N>> {
  const { hub: _, cabinet, shelf, row, ...others } = request.query
  const known: Record<string, unknown> = {
    ...others,
    ...(row !== undefined && { location: { cabinet, shelf, row } }),
    ...fixed,
  }
  const parameters = Object.keys(commandRow(name).parameters).map((key) => [key, known[key]])
  const body = { name, ...Object.fromEntries(parameters) } as CommandBody
  const { data, ...rest } = await execute(services, request, body)
  const answer: unknown = { ...rest, ...readResult(name, data) }
  return ok(200, answer as z.output<CommandAnswer<N>>)
}

async function execute(services: ControlServices, request: ControlRequest, body: CommandBody) {
  const { query, credential, requestName } = request
  const outcome = await sendAudited(services, {
    hubId: query.hub,
    body,
    actor: credential.actor,
    requestName,
  })
  if (outcome.kind !== 'executed') throw hardwareError(outcome, commandErrors(body.name)[0])
  const { commandId, durationMs, data } = outcome
  return { command_id: commandId, duration_ms: Math.round(durationMs), data }
}

/** The result as the row describes it. A value that the cloud cannot read is `unknown`, if the field has that value. */
function readResult(name: AnsweringCommand, data: Record<string, unknown>): Record<string, unknown> {
  const fields = Object.entries(commandRow(name).result!.shape).filter(([key]) => key !== 'duration_ms')
  return Object.fromEntries(
    fields.map(([key, schema]) => {
      const read = [data[key], 'unknown'].find((value) => z.safeParse(schema, value).success)
      if (read === undefined) throw new ApiError('hardware_error', undefined, { reason: 'fault' })
      return [key, read]
    }),
  )
}

/** The order for which an integrator's claim reserves a bin. */
const reservedOrder = async (q: Queries, hubId: number, bin: number): Promise<number | null> =>
  (await readBinOrders(q, [hubId])).get(hubId)?.get(bin)?.reserved_for_order ?? null

/** Parses the hub's answer. An answer that is no bin status is a fault of the hub. */
function live(data: Record<string, unknown>): BinHealth {
  const bin = BinHealth.safeParse(data)
  if (!bin.success) throw new ApiError('hardware_error', undefined, { reason: 'fault' })
  return bin.data
}

/** The order number that people know, for an order that a hub reports; null if the order is unknown here. */
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

/** A bin of a hub that has not reported yet. */
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
