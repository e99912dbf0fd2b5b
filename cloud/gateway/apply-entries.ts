import {
  HubEntry,
  type AlarmEntry,
  type CommandEntry,
  type OperationEntry,
  type OrderEntry,
  type SnapshotEntry,
  type StockEntry,
} from '../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'
import { recordFinished } from './command-store.ts'
import { buryEntry, isEntryFault, isStoreFailure } from './dead-letters.ts'
import type { HubDomain } from './domain.ts'

/** An entry of a batch, not yet judged. */
export interface RawEntry {
  seq: number
  body: unknown
}

export interface Application {
  context: CloudContext
  domain: HubDomain
  hubId: number
  epoch: string
  /** Told after the commit which commands the entries reported as finished. */
  onCommandFinished: (commandId: string) => void
}

type Parsed = { seq: number; body: unknown; entry: HubEntry } | { seq: number; body: unknown; error: Error }

/**
 * Applies entries of a hub's ledger in their order, within the transaction that moves the cursor. First all of them at
 * once, stock in bulk. Where one cannot be applied, all is undone and they are taken one by one, each under a savepoint,
 * so that the bad one alone becomes a dead letter (I8). `careful` begins so: for a batch that failed before for a reason
 * that is not plainly an entry's fault nor the store's.
 */
export async function applyHubEntries(
  tx: Tx,
  application: Application,
  entries: readonly RawEntry[],
  careful: boolean,
): Promise<void> {
  const parsed = entries.map(parseEntry)
  if (!careful)
    try {
      await tx.savepoint(() => applyAll(tx, application, parsed))
      return
    } catch (error) {
      if (!isEntryFault(error)) throw error
    }
  for (const item of parsed)
    try {
      await tx.savepoint(() => applyAll(tx, application, [item]))
    } catch (error) {
      if (!isEntryFault(error) && (!careful || isStoreFailure(error))) throw error
      await bury(tx, application, item, error)
    }
}

function parseEntry({ seq, body }: RawEntry): Parsed {
  const result = HubEntry.safeParse(body)
  return result.success ? { seq, body, entry: result.data } : { seq, body, error: result.error }
}

async function applyAll(tx: Tx, application: Application, items: readonly Parsed[]): Promise<void> {
  const { domain, context, hubId } = application
  let stock: StockEntry[] = []
  // These touch nothing that the others touch: they need not divide a run of stock, nor keep their place.
  const commands: CommandEntry[] = []
  const alarms: AlarmEntry[] = []
  const flush = async (): Promise<void> => {
    if (stock.length > 0) await domain.applyStockEntries(tx, context, hubId, stock)
    stock = []
  }
  for (const item of items) {
    if ('error' in item) await bury(tx, application, item, item.error)
    else if (isStockEntry(item.entry)) stock.push(item.entry)
    else if (item.entry.kind === 'command.finished') commands.push(item.entry)
    else if (item.entry.kind === 'alarm') alarms.push(item.entry)
    else {
      await flush()
      await applyOne(tx, application, item.entry)
    }
  }
  await flush()
  await finishCommands(tx, application, commands)
  await recordAlarms(tx, hubId, alarms)
}

const isStockEntry = (entry: HubEntry): entry is StockEntry => entry.kind.startsWith('stock.')

async function applyOne(
  tx: Tx,
  { context, domain, hubId }: Application,
  entry: OrderEntry | OperationEntry | SnapshotEntry,
): Promise<void> {
  switch (entry.kind) {
    case 'operation.unknown':
    case 'operation.settled':
      return domain.applyOperationEntry(tx, context, hubId, entry)
    case 'snapshot':
      return domain.applySnapshot(tx, context, hubId, entry)
    case 'order.preparing':
    case 'order.ready':
    case 'order.collecting':
    case 'order.completed':
    case 'order.cancelled':
    case 'order.timed_out':
    case 'order.failed':
    case 'order.unclaimed':
      return domain.applyOrderEntry(tx, context, hubId, entry)
  }
}

async function finishCommands(
  tx: Tx,
  { context, hubId, onCommandFinished }: Application,
  entries: readonly CommandEntry[],
): Promise<void> {
  if (entries.length === 0) return
  await recordFinished(tx, context.runtime.clock, hubId, entries)
  tx.afterCommit(() => {
    for (const entry of entries) onCommandFinished(entry.command_id)
  })
}

async function recordAlarms(tx: Tx, hubId: number, alarms: readonly AlarmEntry[]): Promise<void> {
  if (alarms.length === 0) return
  await tx.q
    .insertInto('alarms')
    .values(
      alarms.map(({ code, device, raised, detail, at }) => ({
        hub_id: hubId,
        code,
        device,
        raised: raised ? 1 : 0,
        detail,
        at: Math.round(at),
      })),
    )
    .execute()
}

async function bury(
  tx: Tx,
  { context, hubId, epoch }: Application,
  { seq, body }: Parsed,
  error: unknown,
): Promise<void> {
  const letter = { hubId, stream: 'ledger', epoch, seq, body, error } as const
  await buryEntry(tx.q, letter, context.runtime.clock.now())
  context.log.warn({ hubId, epoch, seq, err: error }, 'entry of a hub cannot be applied: dead letter')
}
