import { z } from 'zod'
import { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import type { Rows } from './rows.ts'
import type { meta } from './tables.ts'

/** Parts that a person at the hub has taken out of service. */
const Held = z.object({ orders: z.boolean().default(false), bins: z.array(z.int()).default([]) })
export type Held = z.infer<typeof Held>

/** How the lives of the service began and ended. Instants are cloud time as it was estimated then, milliseconds. */
const Life = z.object({
  /** The present life has begun, or the last one has not ended in good order. */
  isOpen: z.boolean(),
  /** Starts after a life that did not end in good order. */
  crashes: z.array(z.number()),
  /** The last error that ended one. */
  words: z.string().nullable(),
})

/** Cloud time, as it was estimated, and the wall clock at the same instant, milliseconds. */
const ClockMark = z.object({
  cloud: z.number(),
  /** The cloud's time was no earlier: what it last reported, and what has passed since while the hub ran. */
  least: z.number().optional(),
  wall: z.number(),
})

/** Of a config that another version has stored and this one cannot read whole: it sells nothing, and no order is late by it. */
const cautious: HubConfig = {
  accepting_orders: false,
  disabled_bins: [],
  disabled_fridges: [],
  confirmed_fridges: [],
  prepare_timeout_ms: Number.MAX_SAFE_INTEGER,
  unclaimed_timeout_ms: Number.MAX_SAFE_INTEGER,
}

/** The stored configuration, field by field if it cannot be read whole. */
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

/** The single facts of the hub, by their key in table `meta`, with the value of a fact that is not stored. */
const facts = {
  /** This store holds the cloud's snapshot. Before that the hub sells and dispenses nothing. */
  live: z.boolean().default(false),
  /** The id of this store; a copy of it has the same. */
  store_id: z.string().nullable().default(null),
  /** Taken out of service by a person at the hub; the cloud's configuration does not change it. */
  held: Held.default({ orders: false, bins: [] }),
  /** The ledger's epoch has begun without a snapshot, which is due once it is known to be true (MQTT SPEC §4). */
  owes_snapshot: z.boolean().default(false),
  /** The doors that were seen open last, by name. */
  open_doors: z.array(z.string()).default([]),
  life: Life.default({ isOpen: false, crashes: [], words: null }),
  /** The clock mark that was written last. */
  clock: ClockMark.nullable().default(null),
}

export type FactKey = keyof typeof facts
export type Fact<K extends FactKey> = z.output<(typeof facts)[K]>

/** The single facts of the hub. Each is read from its text once, and again when it has changed. */
export class Facts {
  readonly #rows: Rows<typeof meta>
  readonly #values = new Map<string, { text: string | undefined; value: unknown }>()

  constructor(rows: Rows<typeof meta>) {
    this.#rows = rows
  }

  get<K extends FactKey>(key: K): Fact<K> {
    return this.#read(key, (stored) => facts[key].parse(stored)) as Fact<K>
  }

  set<K extends FactKey>(key: K, value: Fact<K>): void {
    this.#rows.put({ key, value: JSON.stringify(value) })
  }

  /** The operator's settings in the cloud; null before the cloud's first snapshot. */
  config(): HubConfig | null {
    return this.#config()?.config ?? null
  }

  /** False if another version of the service has stored a configuration that this one cannot read: the cloud must send it again. */
  isConfigWhole(): boolean {
    return this.#config()?.isWhole ?? true
  }

  setConfig(config: HubConfig): void {
    this.#rows.put({ key: 'config', value: JSON.stringify(config) })
  }

  #config() {
    return this.#read('config', (stored) => (stored === undefined ? null : configOf(stored)))
  }

  #read<T>(key: string, parse: (stored: unknown) => T): T {
    const text = this.#rows.find(key)?.value
    const known = this.#values.get(key)
    if (known !== undefined && known.text === text) return known.value as T
    const value = parse(text === undefined ? undefined : JSON.parse(text))
    this.#values.set(key, { text, value })
    return value
  }
}
