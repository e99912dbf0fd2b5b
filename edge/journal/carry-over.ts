import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import { isThere } from '../is-there.ts'
import { Sqlite } from './sqlite-driver.ts'
import { storageReasonOf } from './storage-error.ts'
import { openStore } from './store.ts'
import { LONG_AGO, type FridgeRow } from './tables.ts'

export interface CarryOverOptions {
  /** The new journal, and the hub that owns it. */
  path: string
  hubId: number
  /** The numbers of all fridges of the hub. */
  fridges: readonly number[]
  log: Log
  /** A former journal that cannot be read counts as damaged. */
  isGivenUp?: boolean
}

/** The former journal cannot be read now. The next start may be able to. */
export class FormerUnreadable extends Error {}

/**
 * Copies the times of the fridges, and the clock that dated them, from the former journal of this board into its new one. So a
 * move makes no fridge sellable. A fridge without a time there sells nothing until readings prove that it is cold. A new journal
 * that has the times already stays as it is.
 */
export function carryOver(
  from: string,
  { path, hubId, fridges, log, isGivenUp = false }: CarryOverOptions,
): void {
  const former = readFormer(from, { log, isGivenUp })
  const store = openStore({ path, hubId, checkpoint: noCheckpoint, log })
  try {
    store.transact(() => {
      const addFact = store.db.prepare('INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)')
      if (addFact.run('carried', 'true').changes === 0) return
      if (former.loss !== undefined) addFact.run('former_loss', JSON.stringify(former.loss))
      if (former.clock !== undefined) addFact.run('clock', former.clock)
      const add = store.db.prepare<[FridgeRow]>(
        'INSERT OR IGNORE INTO fridges (number, warm_since, read_at, shutoff_at) VALUES (@number, @warm_since, @read_at, @shutoff_at)',
      )
      for (const fridge of former.fridges) add.run(fridge)
      for (const number of fridges)
        add.run({ number, warm_since: LONG_AGO, read_at: LONG_AGO, shutoff_at: null })
    })
  } finally {
    store.close()
  }
}

interface Former {
  fridges: FridgeRow[]
  clock?: string | undefined
  /** Why it has nothing. */
  loss?: string
}

/**
 * A damaged journal must not prevent the start of the hub: nothing is carried over then. Throws `FormerUnreadable` for every other
 * reason, which may end, unless `isGivenUp`.
 */
function readFormer(from: string, { log, isGivenUp }: { log: Log; isGivenUp: boolean }): Former {
  if (!isThere(from)) return { fridges: [] }
  let db: InstanceType<typeof Sqlite> | undefined
  try {
    db = new Sqlite(from)
    const clock = db.prepare<[], { value: string }>("SELECT value FROM meta WHERE key = 'clock'").get()
    return {
      fridges: db.prepare<[], FridgeRow>('SELECT number, warm_since, read_at, shutoff_at FROM fridges').all(),
      clock: clock?.value,
    }
  } catch (error) {
    if (!isDamage(error) && !isGivenUp)
      throw new FormerUnreadable(`the former journal ${from} cannot be read: ${String(error)}`, {
        cause: error,
      })
    const loss = `the former journal ${isDamage(error) ? 'is damaged' : 'cannot be read'}`
    log.error(
      { from, error: String(error) },
      `${loss}: nothing is sold before readings prove that the fridges are cold`,
    )
    return { fridges: [], loss }
  } finally {
    db?.close()
  }
}

/** `SQLITE_ERROR`: a table is missing. */
const isDamage = (error: unknown): boolean =>
  storageReasonOf(error) === 'damaged' ||
  (error instanceof Sqlite.SqliteError && error.code === 'SQLITE_ERROR')
