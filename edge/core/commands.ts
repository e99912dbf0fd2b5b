import type { CommandBody, CommandName } from '../../protocol/model/hub-commands.ts'
import { uuidv7 } from '../../protocol/model/ids.ts'
import { locationKey, type Location } from '../../protocol/model/location.ts'
import type { Command, CommandReason } from '../../protocol/mqtt/command.ts'
import type { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import type { CommandEnd } from '../journal/state.ts'
import type { CommandRow, OrderPhase } from '../journal/tables.ts'
import { beginTestDispense } from './test-dispense.ts'
import { blockedRows, blockRow, unblockRow } from './blocked-rows.ts'
import { hindrance, viewBins, type BinView } from './bins/bin.ts'
import type { BinAction } from './step.ts'
import { beginCycles } from './bins/cycles.ts'
import { beginDoorCommand } from './doors/doors.ts'
import { deliveryOutcome, finishCommand, type BinResult } from './command-results.ts'
import type { Context, Reply } from './context.ts'
import { binHealth } from './health.ts'
import { intend } from './operations/intend.ts'
import { settleByCommand } from './operations/outcomes.ts'
import { binDevice, fridgeDevice } from './layout.ts'
import { cancelOrder, reduceOrder } from './orders/orders.ts'

/** Executes a command given at the hub itself. */
export function operate(context: Context, body: CommandBody, reply: Reply, by?: LocalActor): void {
  take(context, { id: uuidv7(context.runtime), body, session: '', isLocal: true, by }, reply)
}

/** Executes a command from the cloud that has passed the fence. */
export function execute(context: Context, command: Command, reply: Reply): void {
  const { command_id: id, body, session } = command
  take(context, { id, body, session, isLocal: false }, reply)
}

interface Taken {
  id: string
  body: CommandBody
  session: string
  isLocal: boolean
  by?: LocalActor | undefined
}

function take(context: Context, { id, body, session, isLocal, by }: Taken, reply: Reply): void {
  const { state, waiters } = context
  const known = state.commands.find(id)
  if (known && known.outcome !== null) {
    // Replied from the journal: the command is not executed again.
    reply({ command_id: id, session, outcome: known.outcome, reason: known.reason, data: dataOf(known) })
    return
  }
  waiters.set(id, [...(waiters.get(id) ?? []), { session, reply }])
  if (known) return
  const isTaken = context.handle(() => {
    state.commands.add({
      id,
      body,
      is_local: isLocal,
      local_actor: by ?? null,
    })
    const end = begin(context, id, body)
    if (end) finishCommand(context, id, end)
  })
  if (isTaken) return
  // A motion that is not journaled does not run (I1).
  waiters.delete(id)
  reply({ command_id: id, session, ...refused('fault') })
}

const dataOf = ({ data }: CommandRow) => data as CommandEnd['data']

/**
 * Starts a command within the transaction that journals it. Returns its end if there is nothing to wait for,
 * or the reason if it is refused. Returns undefined if its operations end it (`command-results.ts`).
 */
type Executor<Body> = (context: Context, id: string, body: Body) => CommandEnd | CommandReason | undefined

const executed: CommandEnd = { outcome: 'executed', reason: null, data: null }

const executors: {
  readonly [Name in CommandName]: Executor<CommandBody<Name>>
} = {
  open_bin: motion('open_door'),
  close_bin: motion('close_door'),
  raise_bin: motion('raise_lift'),
  lower_bin: motion('lower_lift'),
  get_bin_status(context, _, { bin: number }) {
    const bin = viewBins(context).find((view) => view.number === number)
    return bin ? { ...executed, data: binHealth(context, bin) } : 'not_found'
  },
  open_delivery: (context, id, { order_id, bins }) => openDelivery(context, id, order_id, bins),
  test_dispense: beginTestDispense,
  block_row: (context, _, { location }) => blockedBy(context, location, blockRow),
  unblock_row: (context, _, { location }) => blockedBy(context, location, unblockRow),
  cycle_bin: beginCycles,
  open_fridge: beginDoorCommand,
  close_fridge: beginDoorCommand,
  open_main_door: beginDoorCommand,
  reconnect_bin: (context, id, { bin }) => beginReconnect(context, id, binDevice(bin)),
  reconnect_fridge: (context, id, { fridge }) => beginReconnect(context, id, fridgeDevice(fridge)),
  settle_operation: (context, _, { operation_id, happened }) =>
    settleByCommand(context, operation_id, happened) ?? executed,
  cancel_order: (context, _, { order_id }) => cancelOrder(context, order_id) ?? executed,
  reduce_order: (context, _, { order_id, lines }) =>
    reduceOrder(context, order_id, lines) ? executed : 'not_found',
}

function blockedBy(
  context: Context,
  location: Location,
  act: (context: Context, location: Location) => boolean,
): CommandEnd | CommandReason {
  if (!act(context, location)) return 'not_found'
  return { ...executed, data: { blocked: blockedRows(context).has(locationKey(location)) } }
}

function begin(context: Context, id: string, body: CommandBody): CommandEnd | undefined {
  const executor: Executor<never> = executors[body.name]
  const end = executor(context, id, body as never)
  return typeof end === 'string' ? refused(end) : end
}

const refused = (reason: CommandReason): CommandEnd => ({ outcome: 'refused', reason, data: null })

function motion(action: BinAction): Executor<{ bin: number }> {
  return (context, id, { bin: number }) => {
    const bin = viewBins(context).find((view) => view.number === number)
    if (!bin) return 'not_found'
    const reason = hindrance(action, bin)
    if (reason) return reason
    intend(context, { device: binDevice(number), action, commandId: id })
    return undefined
  }
}

const deliverable: ReadonlySet<OrderPhase> = new Set(['ready', 'collecting'])

/** Opens bins of an order for its customer. */
function openDelivery(
  context: Context,
  id: string,
  orderId: string,
  numbers: readonly number[],
): CommandEnd | CommandReason | undefined {
  const order = context.state.orders.find(orderId)
  if (!order) return 'not_found'
  if (order.phase === 'queued' || order.phase === 'recovering' || order.phase === 'preparing')
    return 'interlock'
  if (!deliverable.has(order.phase)) return 'too_late'
  const bins = viewBins(context)
  const immediate: BinResult[] = []
  let started = 0
  for (const number of new Set(numbers)) {
    const bin = bins.find((each) => each.number === number && each.orderId === orderId)
    // A customer taps twice: a door that is already opening counts as success for both taps.
    const result = bin && isOpening(context, number) ? opens : deliverBin(bin)
    if (result === 'move') {
      intend(context, { device: binDevice(number), action: 'open_door', commandId: id })
      started++
    } else immediate.push({ bin_number: number, ...result })
  }
  if (started === 0) return deliveryOutcome(immediate)
  context.state.commands.change(id, { data: immediate })
  return undefined
}

const opens = { success: true, error: null } as const

const isOpening = ({ state }: Context, bin: number): boolean =>
  state.operations.open().some(({ device, action }) => device === binDevice(bin) && action === 'open_door')

function deliverBin(bin: BinView | undefined): 'move' | Omit<BinResult, 'bin_number'> {
  if (!bin) return { success: false, error: 'not_found' }
  if (bin.up && bin.door === 'open' && !bin.moving) return opens
  const reason = hindrance('open_door', bin)
  return reason ? { success: false, error: reason } : 'move'
}

/**
 * Starts to reconnect a device. After the commit, the hub closes and reopens the serial port of its
 * controller. The command ends after the handshake on the new connection, or after `reconnectMs`. Operations
 * on the controller continue; the hub queries them after the handshake.
 */
function beginReconnect(context: Context, id: string, device: string): CommandReason | undefined {
  const controller = context.layout.controllerOf(device)
  if (controller === undefined) return 'not_found'
  const { clock } = context.runtime
  context.store.afterCommit(() => {
    const startedAt = clock.monotonic()
    const expireIn = (ms: number): void => {
      const cancel = clock.after(ms, () => {
        const end: CommandEnd = { outcome: 'failed', reason: 'timeout', data: { connected: false } }
        if (!context.handle(() => endReconnect(context, id, end))) expireIn(context.settings.fullRetryMs)
      })
      context.reconnecting.set(id, { controller, startedAt, cancel })
    }
    expireIn(context.settings.reconnectMs)
    context.controllers.reopen(device)
  })
  return undefined
}

/** Ends the reconnect commands of a controller after its handshake. */
export function endReconnects(context: Context, controller: string): void {
  const now = context.runtime.clock.monotonic()
  for (const [id, waiting] of context.reconnecting)
    if (waiting.controller === controller)
      endReconnect(context, id, {
        outcome: 'executed',
        reason: null,
        data: { connected: true, duration_ms: Math.round(now - waiting.startedAt) },
      })
}

function endReconnect(context: Context, id: string, outcome: CommandEnd): void {
  finishCommand(context, id, outcome)
  // On a full disk the command continues to wait.
  context.store.afterCommit(() => {
    context.reconnecting.get(id)?.cancel()
    context.reconnecting.delete(id)
  })
}
