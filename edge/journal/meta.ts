import { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import type { Store } from './store.ts'

/** Single facts of the hub, by name. */
export interface Meta {
  /** Whether this store holds what the cloud's snapshot said: until then the hub sells and dispenses nothing. */
  isLive(): boolean
  setLive(live: boolean): void
  /** What an operator set in the cloud; null before the first word from it. */
  config(): HubConfig | null
  setConfig(config: HubConfig): void
  /** Cloud time and the wall clock at the same instant, when last known. */
  clockMark(): ClockMark | null
  setClockMark(mark: ClockMark): void
}

export interface ClockMark {
  cloud: number
  wall: number
}

export function createMeta(store: Store): Meta {
  const read = store.db.prepare<[string], string>('SELECT value FROM meta WHERE key = ?').pluck()
  const write = store.db.prepare<[string, string]>(
    'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
  )
  let config: { text: string | undefined; value: HubConfig | null } = { text: undefined, value: null }
  const parsed = (key: string): unknown => {
    const text = read.get(key)
    return text === undefined ? null : JSON.parse(text)
  }
  return {
    isLive: () => read.get('live') === 'true',
    setLive: (live) => void write.run('live', String(live)),
    config() {
      const text = read.get('config')
      // Asked in every turn, changed once a month.
      if (text !== config.text)
        config = { text, value: text === undefined ? null : HubConfig.parse(JSON.parse(text)) }
      return config.value
    },
    setConfig: (config) => void write.run('config', JSON.stringify(config)),
    clockMark: () => parsed('clock') as ClockMark | null,
    setClockMark: (mark) => void write.run('clock', JSON.stringify(mark)),
  }
}
