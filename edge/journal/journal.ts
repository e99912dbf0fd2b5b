import { createAdoptions, type Adoptions } from './adoptions.ts'
import { createAlarms, type Alarms } from './alarms.ts'
import { createBins, type Bins } from './bins.ts'
import { createCommands, type Commands } from './commands.ts'
import { createHeldEntries, type HeldEntries } from './held-entries.ts'
import { createMeta, type Meta } from './meta.ts'
import { createOperations, type Operations } from './operations.ts'
import { createOrders, type Orders } from './orders.ts'
import { createStock, type Stock } from './stock.ts'
import type { Store } from './store.ts'

/** Everything that the hub holds true. Whoever writes does so within `store.transact`. */
export interface Journal {
  meta: Meta
  operations: Operations
  orders: Orders
  bins: Bins
  stock: Stock
  commands: Commands
  adoptions: Adoptions
  alarms: Alarms
  held: HeldEntries
}

/** Prepares every statement once. `bins` are the numbers of the hub's bins. */
export function createJournal(store: Store, bins: number[]): Journal {
  return store.transact(() => ({
    meta: createMeta(store),
    operations: createOperations(store),
    orders: createOrders(store),
    bins: createBins(store, bins),
    stock: createStock(store),
    commands: createCommands(store),
    adoptions: createAdoptions(store),
    alarms: createAlarms(store),
    held: createHeldEntries(store),
  }))
}

const KEPT_LEDGER_ROWS = 20_000

/** Deletes what is finished and old. */
export function pruneJournal({ operations, orders, commands, stock }: Journal, kept: number): void {
  operations.prune(kept)
  orders.prune(kept)
  commands.prune(kept)
  stock.prune(KEPT_LEDGER_ROWS)
}
