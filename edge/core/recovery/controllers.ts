import { controllerSubject, HUB_SUBJECT } from '../../../protocol/model/subject.ts'
import type { ControllerIdentity, StoredOperation } from '../../hardware/controller-events.ts'
import type { ControllerRow } from '../../journal/tables.ts'
import { abandonCommands } from '../command-results.ts'
import type { Context } from '../context.ts'
import { loseProofs } from '../fridges.ts'
import { isAlarmRaised, reportIncident, setAlarm } from '../ledger.ts'
import { ask } from '../operations/intend.ts'
import {
  handshakes,
  judge,
  type Board,
  type NewestOperation,
  type Progress,
} from '../operations/reconciliation.ts'
import { accountImported } from './orders.ts'
import type { OtherBoard } from '../devices.ts'

/** The maximum number of operations that a controller lists (serial SPEC §7). */
const LISTED = 256

/**
 * A controller has connected: finds its owner, and reconciles its memory with the journal. If this hub's
 * controller has a newest operation that is not in the journal, the journal is new or an old copy. Then the
 * controller's memory is right.
 */
export function meetController(context: Context, controller: string, identity: ControllerIdentity): void {
  const { state, devices, otherBoards } = context
  const { memoryId, lastOperation } = identity
  // The board's identity and device reports now show whether it is still foreign.
  setAlarm(context, 'controller_foreign', controllerSubject(controller), false, '')
  const known = state.controllers.find(controller)
  const board = boardOf(context, controller, identity, known)
  const handshake = handshakes[board][progressOf(known)][newestOf(context, lastOperation)]
  if (handshake === 'refuse' || handshake === 'take_over')
    return meetOtherBoard(context, controller, identity, handshake === 'refuse')
  otherBoards.delete(controller)
  devices.up(controller, memoryId, identity.protocol)
  if (handshake === 'import' && board === 'former') noteLost(context)
  if (handshake === 'start_over') startOver(context, controller)
  else if (known && known.memory_id !== memoryId) noteReplaced(context, controller, memoryId, known)
  setReconciled(context, controller, memoryId, handshake === 'agree')
  if (handshake !== 'agree') return listUnreconciled(context)
  askAll(context, controller)
  endRecovery(context)
  if (identity.owner?.store !== context.storeId) own(context, controller, false)
}

function boardOf(
  context: Context,
  controller: string,
  identity: ControllerIdentity,
  known: ControllerRow | undefined,
): Board {
  if (identity.owner === null)
    return context.ownBoots.get(controller) === identity.bootId ? 'emptied' : 'nobodys'
  const { hub, ctl } = identity.owner
  if (ctl === controller && hub === context.formerHubId && hub !== context.hardware.hubId) return 'moved'
  if (!isOfThisLine(context, controller, identity)) return 'foreign'
  const isOwn = identity.owner.store === context.storeId || identity.memoryId === known?.memory_id
  return isOwn ? 'own' : 'former'
}

/** A controller has served this hub, but this store does not know it: another journal existed before. */
function noteLost(context: Context): void {
  if (isAlarmRaised(context.state, 'journal_lost', HUB_SUBJECT)) return
  const detail = 'what was not reported to the cloud is known by the controllers alone'
  context.log.warn({}, `the journal of this hub was lost, and the hub starts a new one: ${detail}`)
  setAlarm(context, 'journal_lost', HUB_SUBJECT, true, detail)
  loseProofs(context)
}

/**
 * Clears the alarms of a lost or restored journal once every controller has reported and the cloud's snapshot
 * is applied.
 */
export function endRecovery(context: Context): void {
  const { state, layout } = context
  const isWhole = layout.controllers.every((each) => state.controllers.find(each)?.reconciled)
  if (!isWhole || !state.facts.get('live')) return
  for (const code of ['journal_lost', 'journal_restored'] as const)
    setAlarm(context, code, HUB_SUBJECT, false, '')
}

/**
 * Another board, or a lost memory. Queries for operations of the former memory find nothing, so these
 * operations become unknown.
 */
function noteReplaced(context: Context, controller: string, memoryId: string, known: ControllerRow): void {
  const before = known.memory_id
  context.log.warn({ controller, memoryId, before }, 'the controller was replaced, or has lost its memory')
  const detail = 'another board, or one that has lost its memory'
  reportIncident(context, 'controller_replaced', controllerSubject(controller), detail)
}

const progressOf = (known: ControllerRow | undefined): Progress =>
  known === undefined ? 'new' : known.reconciled ? 'reconciled' : 'unreconciled'

const newestOf = ({ state }: Context, id: string | null): NewestOperation =>
  id === null ? 'none' : state.operations.find(id) ? 'known' : 'foreign'

function setReconciled({ state }: Context, id: string, memory_id: string, isReconciled: boolean): void {
  const known = state.controllers.find(id)
  const continuous = known?.memory_id === memory_id ? known.continuous : false
  state.controllers.put({ id, memory_id, reconciled: isReconciled, continuous })
}

/** Queries a controller for the outcome of all its operations without a final outcome (SPEC §5). */
function askAll(context: Context, controller: string): void {
  for (const operation of context.state.operations.questionsFor(controller)) ask(context, operation)
}

/** Lists the operations of every connected controller that is not reconciled. */
function listUnreconciled({ state, devices, layout, store, controllers }: Context): void {
  for (const each of layout.controllers)
    if (devices.isUp(each) && state.controllers.find(each)?.reconciled !== true)
      store.afterCommit(() => void controllers.list(each, LISTED))
}

/**
 * This store is a copy of a store that continued elsewhere. Its stock and orders are outdated, and its
 * unreported entries belong to another history. It starts again like a new store, from the cloud's snapshot
 * and the controllers' memories.
 */
function startOver(context: Context, controller: string): void {
  const { state, outbox, log, askAt, knownMemories, resetInbox } = context
  const { base, last } = outbox.position('ledger')
  const orders = state.orders.unfinished().map(({ id }) => id)
  log.warn(
    { controller, entries: last - base, orders },
    'the journal is an older copy: stock, orders and unreported entries are deleted, and read again from the cloud',
  )
  state.orders.clear()
  state.bins.releaseAll()
  state.stock.clear()
  state.operations.clear()
  // Waiting callers get their replies; the reports are dropped with the rest of the ledger.
  abandonCommands(context)
  state.held.take()
  state.facts.set('live', false)
  askAt.clear()
  for (const known of state.controllers.all()) {
    // A memory that the copy already knew, and that is unchanged, contains all operations since the copy was
    // made.
    const continuous = knownMemories.get(known.id) === known.memory_id
    state.controllers.put({ ...known, reconciled: false, continuous })
  }
  outbox.disown()
  outbox.newEpoch('ledger')
  outbox.newEpoch('telemetry')
  setAlarm(context, 'journal_restored', HUB_SUBJECT, true, `${controller} has done what it does not know of`)
  resetInbox()
}

/** Imports a controller's operations; afterwards its memory is reconciled. */
export function importListed(context: Context, controller: string, listed: readonly StoredOperation[]): void {
  const { state, devices } = context
  const known = state.controllers.find(controller)
  if (!devices.isUp(controller) || !known || known.reconciled) return
  for (const operation of listed) importOperation(context, known, operation)
  const isWhole = listed.length < LISTED
  state.controllers.put({ ...known, reconciled: true, continuous: isWhole && known.continuous })
  if (state.facts.get('live')) accountImported(context)
  endRecovery(context)
  own(context, controller, false)
}

function importOperation(context: Context, from: ControllerRow, operation: StoredOperation): void {
  const { state, cloud, settings } = context
  const { operationId, device, action, state: phase, why, moved, drops, ms, shelf, row, bin, ref } = operation
  if (state.operations.find(operationId)) return
  const verdict = judge(action, operation, true)
  state.operations.add({
    id: operationId,
    controller: from.id,
    device,
    action,
    max_ms: settings.maxMs[action],
    shelf: shelf ?? null,
    row: row ?? null,
    bin: bin ?? null,
    ref: ref ?? null,
    memory_id: from.memory_id,
    state: verdict,
    why: why ?? (phase === 'interrupted' ? phase : null),
    moved,
    drops: verdict === 'open' ? 0 : drops,
    ms,
    imported: true,
    intent_at: cloud.now(),
    ended_at: verdict === 'open' ? null : cloud.now(),
  })
}

/** A board has connected that is not this hub's. `isForeign`: the hub does not take it over automatically. */
function meetOtherBoard(
  context: Context,
  controller: string,
  { owner, memoryId }: ControllerIdentity,
  isForeign: boolean,
): void {
  const { otherBoards, devices, log } = context
  otherBoards.set(controller, { isForeign, reported: new Set() })
  devices.hold(controller)
  if (!isForeign) return
  const whose =
    owner === null ? 'is new, or has lost its memory' : `belongs to hub ${owner.hub} as ${owner.ctl}`
  const detail = `the board on its line ${whose}`
  log.warn({ controller, memoryId, owner }, `${detail}: it is not used`)
  setAlarm(context, 'controller_foreign', controllerSubject(controller), true, detail)
}

/** Whether the board's owner is this hub and this line. */
const isOfThisLine = ({ hardware }: Context, controller: string, { owner }: ControllerIdentity): boolean =>
  owner?.hub === hardware.hubId && owner.ctl === controller

/**
 * A device reported on the line of a foreign controller. A board without an owner is taken over once exactly
 * the devices of this line have reported.
 */
export function noteDeviceOf(
  context: Context,
  controller: string,
  otherBoard: OtherBoard,
  device: string,
): void {
  otherBoard.reported.add(device)
  if (!otherBoard.isForeign) takeOver(context, controller, otherBoard)
}

/** Takes over a board without its memory. Returns false if the line does not have exactly the expected devices. */
export function takeOver(context: Context, controller: string, { reported }: OtherBoard): boolean {
  const wanted = context.layout.devicesOf(controller)
  if (reported.size !== wanted.length || !wanted.every((device) => reported.has(device))) return false
  context.log.info({ controller }, 'the controller on this line is taken over')
  own(context, controller, true)
  return true
}

/** Stores this hub as the owner in a controller. */
function own(context: Context, controller: string, wipe: boolean): void {
  const { store, controllers, hardware, storeId } = context
  const owner = { hub: hardware.hubId, ctl: controller, store: storeId }
  store.afterCommit(() => void controllers.own(controller, owner, wipe))
}
