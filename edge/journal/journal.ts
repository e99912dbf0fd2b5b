import type { HubEntry } from '../../protocol/mqtt/hub-entries.ts'
import { createBins } from './bins.ts'
import { createCommands } from './commands.ts'
import { createControllerMemories } from './controllers.ts'
import { createMeta } from './meta.ts'
import { createOperations } from './operations.ts'
import { createOrders } from './orders.ts'
import { run, value, values } from './statements.ts'
import { createStock } from './stock.ts'
import type { Store } from './store.ts'

/** Everything that the hub holds true, table by table. Callers write within `store.transact`. */
export type Journal = ReturnType<typeof createJournal>

/** Prepares every statement once. `bins` are the numbers of the hub's bins. */
export function createJournal(store: Store, bins: readonly number[]) {
  return store.transact(() => ({
    meta: createMeta(store),
    operations: createOperations(store),
    orders: createOrders(store),
    bins: createBins(store, bins),
    stock: createStock(store),
    commands: createCommands(store),
    controllers: createControllerMemories(store),
    alarms: createAlarms(store),
    held: createHeldEntries(store),
  }))
}

/** Which alarms are raised, so that each is reported once, also across restarts. */
function createAlarms({ db }: Store) {
  const raise = run(
    db.prepare<[code: string, device: string]>(
      'INSERT INTO alarms (code, device) VALUES (?, ?) ON CONFLICT DO NOTHING',
    ),
  )
  const lower = run(
    db.prepare<[code: string, device: string]>('DELETE FROM alarms WHERE code = ? AND device = ?'),
  )
  const find = value(
    db.prepare<[code: string, device: string], number>('SELECT 1 FROM alarms WHERE code = ? AND device = ?'),
  )
  return {
    /** False where it was raised, or lowered, already. */
    set: (code: string, device: string, raised: boolean): boolean =>
      (raised ? raise : lower)(code, device) > 0,
    isRaised: (code: string, device: string): boolean => find(code, device) !== undefined,
  }
}

/** Entries for the cloud of a hub that has no stock yet: they wait for the snapshot with which its epoch begins. */
function createHeldEntries({ db }: Store) {
  const insert = run(db.prepare<[body: string]>('INSERT INTO held_entries (body) VALUES (?)'))
  const bodies = values(db.prepare<[], string>('SELECT body FROM held_entries ORDER BY number'))
  const clear = run(db.prepare<[]>('DELETE FROM held_entries'))
  return {
    hold: (entry: HubEntry) => insert(JSON.stringify(entry)),
    /** Returns them in their order and forgets them. */
    take(): HubEntry[] {
      const held = bodies()
      clear()
      return held.map((body) => JSON.parse(body) as HubEntry)
    },
  }
}

const KEPT_LEDGER_ROWS = 20_000

/** Deletes what is finished and old. */
export function pruneJournal({ operations, orders, commands, stock }: Journal, kept: number): void {
  operations.prune(kept)
  orders.prune(kept)
  commands.prune(kept)
  stock.prune(KEPT_LEDGER_ROWS)
}
