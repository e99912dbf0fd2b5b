import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import type { Log } from '../../protocol/model/log.ts'
import { isThere } from '../is-there.ts'
import { Sqlite } from './sqlite-driver.ts'
import { storageReasonOf } from './storage-error.ts'
import { openStore } from './store.ts'
import type { FridgeRow } from './tables.ts'

/** Before any time that a clock can show: a board without a battery may begin in 1970. */
const LONG_AGO = -8.64e15

export interface CarryOverOptions {
  /** The new journal, and the hub that owns it. */
  path: string
  hubId: number
  /** The numbers of all fridges of the hub. */
  fridges: readonly number[]
  log: Log
}

/**
 * Copies the times of the fridges, and the clock that dated them, from the former journal of this board into its new one. So a
 * move makes no fridge sellable. A fridge without a time there sells nothing until readings prove that it is cold. A new journal
 * that has the times already stays as it is.
 */
export function carryOver(from: string, { path, hubId, fridges, log }: CarryOverOptions): void {
  const former = readFormer(from, log)
  const store = openStore({ path, hubId, checkpoint: noCheckpoint, log })
  try {
    store.transact(() => {
      const addFact = store.db.prepare('INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)')
      if (addFact.run('carried', 'true').changes === 0) return
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
  clock: string | undefined
}

/**
 * A damaged journal must not prevent the start of the hub: nothing is carried over then. Throws for every other reason, which may
 * end: the next start reads it again.
 */
function readFormer(from: string, log: Log): Former {
  const nothing = { fridges: [], clock: undefined }
  if (!isThere(from)) return nothing
  let db: InstanceType<typeof Sqlite> | undefined
  try {
    db = new Sqlite(from)
    const clock = db.prepare<[], { value: string }>("SELECT value FROM meta WHERE key = 'clock'").get()
    return {
      fridges: db.prepare<[], FridgeRow>('SELECT number, warm_since, read_at, shutoff_at FROM fridges').all(),
      clock: clock?.value,
    }
  } catch (error) {
    if (!isDamage(error))
      throw new Error(`the former journal ${from} cannot be read: ${String(error)}`, { cause: error })
    log.error(
      { from, error: error.message },
      'the former journal is damaged: nothing is sold before readings prove that the fridges are cold',
    )
    return nothing
  } finally {
    db?.close()
  }
}

/** `SQLITE_ERROR`: a table is missing. */
const isDamage = (error: unknown): error is Error =>
  storageReasonOf(error) === 'damaged' ||
  (error instanceof Sqlite.SqliteError && error.code === 'SQLITE_ERROR')
