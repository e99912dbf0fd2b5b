import type { ControllerIdentity, StoredOperation } from '../../hardware/controllers.ts'
import type { AdoptionRow } from '../../journal/adoptions.ts'
import type { OperationRow } from '../../journal/operations.ts'
import { setAlarm } from '../ledger.ts'
import type { Context } from '../context.ts'
import { accountImported } from './inheritance.ts'
import { judge } from '../operations/verdict.ts'

const LISTED = 256

/**
 * A controller has come up: is this journal the one that gave it its orders? If its newest operation is not in the
 * journal, the journal is new, or a copy of an older one; then the controller's memory is the better witness.
 */
export function meetController(context: Context, controller: string, identity: ControllerIdentity): void {
  const { journal, devices, log } = context
  const { memoryId, lastOperation } = identity
  devices.up(controller, memoryId)
  setAlarm(context, 'controller_silent', controller, false, '')
  // What it says of its devices next tells whether it still is.
  setAlarm(context, 'wrong_controller', controller, false, '')
  const known = journal.adoptions.find(controller)
  if (known?.adopted === 1 && known.memory_id !== memoryId)
    log.warn(
      { controller, memoryId, before: known.memory_id },
      'the controller has lost its memory of operations',
    )
  const isStrange = lastOperation !== null && journal.operations.find(lastOperation) === undefined
  if (!isStrange) {
    journal.adoptions.put(adoption(context, controller, memoryId, 1))
    askAll(context, controller)
    return
  }
  if (known?.adopted === 1) disown(context, controller)
  journal.adoptions.put(adoption(context, controller, memoryId, 0))
  for (const each of context.layout.controllers)
    if (devices.isUp(each) && journal.adoptions.find(each)?.adopted !== 1)
      context.store.afterCommit(() => void context.controllers.list(each, LISTED))
}

function adoption({ journal }: Context, id: string, memory_id: string, adopted: 0 | 1): AdoptionRow {
  const known = journal.adoptions.find(id)
  return { id, memory_id, adopted, continuous: known?.memory_id === memory_id ? known.continuous : 0 }
}

/** Asks a controller for the outcome of everything of it that is not known (SPEC §5). */
function askAll(context: Context, controller: string): void {
  for (const operation of context.journal.operations.questionsFor(controller)) ask(context, operation)
}

/** Asks what became of an operation, and when to ask again. */
export function ask(context: Context, operation: OperationRow): void {
  const { runtime, settings, askAt, store, controllers } = context
  if (operation.state === 'open')
    askAt.set(operation.id, runtime.clock.monotonic() + settings.queryAfterMs + operation.max_ms)
  store.afterCommit(() => void controllers.query(operation.device, operation.id))
}

/**
 * This store is a copy of one that went on elsewhere: what it believes of stock and orders is out of date, and whatever
 * it has not reported belongs to another history. It begins again, as a new store does, with the cloud's snapshot and
 * what the controllers remember.
 */
function disown(context: Context, controller: string): void {
  const { journal, outbox, log, askAt, knownMemories, resetInbox } = context
  log.error({ controller }, 'the journal is older than its controllers: beginning anew from the cloud')
  journal.orders.deleteAll()
  journal.bins.releaseAll()
  journal.stock.deleteAll()
  journal.operations.deleteAll()
  journal.commands.abandonAll()
  journal.held.take()
  journal.meta.setLive(false)
  askAt.clear()
  for (const known of journal.adoptions.all()) {
    // A memory that the copy knew already, and that is still the same, holds all that happened since the copy was made.
    const continuous = knownMemories.get(known.id) === known.memory_id ? 1 : 0
    journal.adoptions.put({ ...known, adopted: 0, continuous })
  }
  outbox.forget('ledger', outbox.position('ledger').last)
  outbox.forgetEpochs()
  outbox.newEpoch('ledger')
  outbox.newEpoch('telemetry')
  resetInbox()
}

/** Takes over what a controller remembers. */
export function importListed(context: Context, controller: string, listed: readonly StoredOperation[]): void {
  const { journal } = context
  const known = journal.adoptions.find(controller)
  if (!context.devices.isUp(controller) || !known || known.adopted === 1) return
  for (const operation of listed) importOperation(context, controller, known.memory_id, operation)
  const isWhole = listed.length < LISTED
  journal.adoptions.put({ ...known, adopted: 1, continuous: isWhole ? known.continuous : 0 })
  if (journal.meta.isLive()) accountImported(context)
}

function importOperation(
  { journal, cloud, settings }: Context,
  controller: string,
  memoryId: string,
  operation: StoredOperation,
): void {
  const { operationId, device, action, state, why, moved, drops, ms, shelf, row, bin, ref } = operation
  if (journal.operations.find(operationId)) return
  const verdict = judge(action, operation, true)
  journal.operations.insert({
    id: operationId,
    controller,
    device,
    action,
    max_ms: settings.maxMs[action],
    shelf: shelf ?? null,
    row: row ?? null,
    bin: bin ?? null,
    ref: ref ?? null,
    memory_id: memoryId,
    state: verdict,
    why: why ?? (state === 'interrupted' ? state : null),
    moved: moved ? 1 : 0,
    drops: verdict === 'open' ? 0 : drops,
    ms,
    order_id: null,
    line_id: null,
    unit: null,
    product_id: null,
    command_id: null,
    imported: 1,
    intent_at: cloud.now(),
    ended_at: verdict === 'open' ? null : cloud.now(),
  })
}
