import { z } from 'zod'
import { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import { all, writer } from './statements.ts'
import type { Store } from './store.ts'

/** What a person who stands before the hub does not want used. */
const Held = z.object({ orders: z.boolean().default(false), bins: z.array(z.int()).default([]) })
export type Held = z.infer<typeof Held>

/** Of a config that another version has kept and this one cannot read whole: it sells nothing, and no order is late by it. */
const cautious: HubConfig = {
  accepting_orders: false,
  disabled_bins: [],
  disabled_fridges: [],
  confirmed_fridges: [],
  prepare_timeout_ms: Number.MAX_SAFE_INTEGER,
  unclaimed_timeout_ms: Number.MAX_SAFE_INTEGER,
}

/** What is kept, field by field where it cannot be read whole. */
function configOf(stored: unknown): { config: HubConfig; isWhole: boolean } {
  const parsed = HubConfig.safeParse(stored)
  if (parsed.success) return { config: parsed.data, isWhole: true }
  const fields = Object(stored) as Record<string, unknown>
  const known = Object.entries(HubConfig.shape).flatMap(([name, field]) => {
    const read = field.safeParse(fields[name])
    return read.success ? [[name, read.data] as const] : []
  })
  const config: HubConfig = { ...cautious, ...(Object.fromEntries(known) as Partial<HubConfig>) }
  return { config: { ...config, accepting_orders: false }, isWhole: false }
}

/** How the lives of the service began and ended. Instants are cloud time as it was estimated then, milliseconds. */
const Life = z.object({
  /** The present life has begun, or the last one has not ended in good order. */
  isOpen: z.boolean(),
  /** Starts after a life that did not end in good order. */
  crashes: z.array(z.number()),
  /** The last error that ended one. */
  words: z.string().nullable(),
})
export type Life = z.infer<typeof Life>
const noLife: Life = { isOpen: false, crashes: [], words: null }

/** Cloud time, as it was estimated, and the wall clock at the same instant, milliseconds. */
export interface ClockMark {
  cloud: number
  /** The cloud's time was no earlier: what it last said, and what has passed since while the hub ran. */
  least: number
  wall: number
}

export type Meta = ReturnType<typeof createMeta>

/** Single facts of the hub, by name. */
export function createMeta(store: Store) {
  const { db } = store
  const rows = all(db.prepare<[], { key: string; value: string }>('SELECT key, value FROM meta'))
  const values = store.keep(() => new Map(rows().map(({ key, value }) => [key, value])))
  const read = (key: string): string | undefined => values.get().get(key)
  // Both are asked at every step, and changed once a month.
  const config = store.keep(() => {
    const text = read('config')
    return text === undefined ? null : configOf(JSON.parse(text))
  })
  const held = store.keep((): Held => Held.parse(JSON.parse(read('held') ?? '{}')))
  const write = writer(
    values,
    config,
    held,
  )(
    db.prepare<[key: string, value: string]>(
      'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    ),
  )
  return {
    /** Whether this store holds what the cloud's snapshot said: until then the hub sells and dispenses nothing. */
    isLive: (): boolean => read('live') === 'true',
    setLive: (live: boolean) => write('live', String(live)),
    /** The id of this store; a copy of it has the same. */
    storeId: (): string | null => read('store_id') ?? null,
    setStoreId: (id: string) => write('store_id', id),
    /** What an operator set in the cloud; null before the first word from it. */
    config: (): HubConfig | null => config.get()?.config ?? null,
    /** False where another version of the service has kept what this one cannot read: the cloud has to say it again. */
    isConfigWhole: (): boolean => config.get()?.isWhole ?? true,
    setConfig: (config: HubConfig) => write('config', JSON.stringify(config)),
    /** What a person at the hub has taken out of service; the cloud's word does not change it. */
    held: held.get,
    setHeld: (held: Held) => write('held', JSON.stringify(held)),
    /** The ledger's epoch has begun without a snapshot, which is due once it is known to be true (MQTT SPEC §4). */
    owesSnapshot: (): boolean => read('owes_snapshot') === 'true',
    setOwesSnapshot: (owes: boolean) => write('owes_snapshot', String(owes)),
    /** The doors that were seen open last, by name. */
    openDoors: (): readonly string[] => JSON.parse(read('open_doors') ?? '[]') as string[],
    setOpenDoors: (doors: readonly string[]) => write('open_doors', JSON.stringify(doors)),
    life(): Life {
      const text = read('life')
      return text === undefined ? noLife : Life.parse(JSON.parse(text))
    },
    setLife: (life: Life) => write('life', JSON.stringify(life)),
    /** The clock mark written last. */
    clockMark(): ClockMark | null {
      const text = read('clock')
      return text === undefined ? null : (JSON.parse(text) as ClockMark)
    },
    setClockMark: (mark: ClockMark) => write('clock', JSON.stringify(mark)),
  }
}
