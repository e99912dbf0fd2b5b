import { existsSync } from 'node:fs'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { Sqlite } from './sqlite-driver.ts'
import { openStore } from './store.ts'
import type { FridgeRow } from './tables.ts'

/**
 * Copies the times of the fridges, and the clock that dated them, from the former journal of this board into its new one. So a
 * move makes no fridge sellable. A new journal that has them already stays as it is.
 */
export function carryOver(from: string, { path, hubId }: { path: string; hubId: number }): void {
  if (!existsSync(from)) return
  const former = new Sqlite(from)
  const store = openStore({ path, hubId, checkpoint: noCheckpoint, log: silentLog })
  try {
    const fridges = former
      .prepare<[], FridgeRow>('SELECT number, warm_since, read_at, shutoff_at FROM fridges')
      .all()
    const clock = former.prepare<[], { value: string }>("SELECT value FROM meta WHERE key = 'clock'").get()
    store.transact(() => {
      const addFact = store.db.prepare('INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)')
      if (addFact.run('carried', 'true').changes === 0) return
      if (clock) addFact.run('clock', clock.value)
      const add = store.db.prepare(
        'INSERT OR IGNORE INTO fridges (number, warm_since, read_at, shutoff_at) VALUES (@number, @warm_since, @read_at, @shutoff_at)',
      )
      for (const fridge of fridges) add.run(fridge)
    })
  } finally {
    store.close()
    former.close()
  }
}
