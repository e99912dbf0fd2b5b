import { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import { run, value } from './statements.ts'
import type { Store } from './store.ts'

/** Cloud time, as it was estimated, and the wall clock at the same instant, milliseconds. */
export interface ClockMark {
  cloud: number
  /** The cloud's time was no earlier: what it last said, and what has passed since while the hub ran. */
  least: number
  wall: number
}

export type Meta = ReturnType<typeof createMeta>

/** Single facts of the hub, by name. */
export function createMeta({ db }: Store) {
  const read = value(db.prepare<[key: string], string>('SELECT value FROM meta WHERE key = ?'))
  const write = run(
    db.prepare<[key: string, value: string]>(
      'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    ),
  )
  let cached: { text: string | undefined; config: HubConfig | null } = { text: undefined, config: null }
  return {
    /** Whether this store holds what the cloud's snapshot said: until then the hub sells and dispenses nothing. */
    isLive: (): boolean => read('live') === 'true',
    setLive: (live: boolean) => write('live', String(live)),
    /** The id of this store; a copy of it has the same. */
    storeId: (): string | null => read('store_id') ?? null,
    setStoreId: (id: string) => write('store_id', id),
    /** What an operator set in the cloud; null before the first word from it. */
    config(): HubConfig | null {
      const text = read('config')
      // Asked at every step, changed once a month.
      if (text !== cached.text)
        cached = { text, config: text === undefined ? null : HubConfig.parse(JSON.parse(text)) }
      return cached.config
    },
    setConfig: (config: HubConfig) => write('config', JSON.stringify(config)),
    /** The clock mark written last. */
    clockMark(): ClockMark | null {
      const text = read('clock')
      return text === undefined ? null : (JSON.parse(text) as ClockMark)
    },
    setClockMark: (mark: ClockMark) => write('clock', JSON.stringify(mark)),
  }
}
