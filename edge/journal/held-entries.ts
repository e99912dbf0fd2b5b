import type { HubEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { Store } from './store.ts'

/** Ledger entries of a hub that has no stock yet: they wait for the snapshot with which its epoch begins. */
export interface HeldEntries {
  hold(entry: HubEntry): void
  /** Returns them in their order and forgets them. */
  take(): HubEntry[]
}

export function createHeldEntries({ db }: Store): HeldEntries {
  const hold = db.prepare<[string]>('INSERT INTO held_entries (body) VALUES (?)')
  const read = db.prepare<[], string>('SELECT body FROM held_entries ORDER BY number').pluck()
  const clear = db.prepare<[]>('DELETE FROM held_entries')
  return {
    hold: (entry) => void hold.run(JSON.stringify(entry)),
    take() {
      const bodies = read.all()
      clear.run()
      return bodies.map((body) => JSON.parse(body) as HubEntry)
    },
  }
}
