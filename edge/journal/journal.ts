import type { HubEntry } from '../../protocol/mqtt/hub-entries.ts'
import { createAcceptances } from './acceptances.ts'
import { createBins } from './bins.ts'
import { createCommands } from './commands.ts'
import { createControllerMemories } from './controllers.ts'
import { createDeadLetters } from './dead-letters.ts'
import { createMeta } from './meta.ts'
import { createOperations } from './operations.ts'
import { createOrders } from './orders.ts'
import { mergeKey, replacedBy } from './merge.ts'
import { all, run, values } from './statements.ts'
import { createAlarms, createFridges, createRowFaults, createToldStates } from './states.ts'
import { createStock } from './stock.ts'
import type { Store } from './store.ts'

/** Everything that the hub holds true, table by table. Callers write within `store.transact`. */
export type Journal = ReturnType<typeof createJournal>

/** Prepares every statement once, and writes nothing. `bins` are the numbers of the hub's bins. */
export function createJournal(store: Store, bins: readonly number[]) {
  return {
    meta: createMeta(store),
    operations: createOperations(store),
    orders: createOrders(store),
    bins: createBins(store, bins),
    stock: createStock(store),
    commands: createCommands(store),
    controllers: createControllerMemories(store),
    alarms: createAlarms(store),
    rowFaults: createRowFaults(store),
    fridges: createFridges(store),
    told: createToldStates(store),
    deadLetters: createDeadLetters(store),
    held: createHeldEntries(store),
    acceptances: createAcceptances(store),
  }
}

/**
 * Entries for the cloud of a hub that has no stock yet: they wait for the snapshot with which its epoch begins. States and alarms
 * replace earlier ones as in the outbox.
 */
function createHeldEntries({ db }: Store) {
  const insert = run(db.prepare<[body: string]>('INSERT INTO held_entries (body) VALUES (?)'))
  const bodies = values(db.prepare<[], string>('SELECT body FROM held_entries ORDER BY number'))
  const newest = all(
    db.prepare<[count: number], { number: number; body: string }>(
      'SELECT number, body FROM held_entries ORDER BY number DESC LIMIT ?',
    ),
  )
  const remove = run(db.prepare<[number: number]>('DELETE FROM held_entries WHERE number = ?'))
  const clear = run(db.prepare<[]>('DELETE FROM held_entries'))
  return {
    hold(entry: HubEntry): void {
      const tail = mergeKey(entry) === undefined ? [] : newest(HELD_LOOKED_AT)
      const replaced = replacedBy(
        tail.map(({ number, body }) => ({ number, entry: JSON.parse(body) as HubEntry })),
        entry,
      )
      if (replaced) remove(replaced.number)
      insert(JSON.stringify(entry))
    },
    /** Returns them in their order and forgets them. */
    take(): HubEntry[] {
      const held = bodies()
      clear()
      return held.map((body) => JSON.parse(body) as HubEntry)
    },
  }
}

const HELD_LOOKED_AT = 64
const KEPT_LEDGER_ROWS = 20_000
const KEPT_ACCEPTANCES = 20

/** Deletes what is finished and old. */
export function pruneJournal(
  { operations, orders, commands, stock, deadLetters, acceptances }: Journal,
  kept: number,
): void {
  operations.prune(kept)
  orders.prune(kept)
  commands.prune(kept)
  deadLetters.prune(kept)
  stock.prune(KEPT_LEDGER_ROWS)
  acceptances.prune(KEPT_ACCEPTANCES)
}
