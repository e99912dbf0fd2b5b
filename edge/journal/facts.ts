import { z } from 'zod'
import { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import type { Rows } from './rows.ts'
import type { meta } from './tables.ts'

/** Parts that a person at the hub has taken out of service. */
const Held = z.object({ orders: z.boolean().default(false), bins: z.array(z.int()).default([]) })
export type Held = z.infer<typeof Held>

/** Starts and ends of the service's processes. Instants are the estimated cloud time, milliseconds. */
const Life = z.object({
  /** The current process has started, or the last one did not shut down cleanly. */
  isOpen: z.boolean(),
  /** Starts after a process that did not shut down cleanly. */
  crashes: z.array(z.number()),
  /** The last error that ended a process. */
  words: z.string().nullable(),
  /** Number of such starts since the journal is new. */
  restarts: z.int().default(0),
  /** The latest of them, and the error that ended the former process; null if that process was killed or lost power. */
  last: z.object({ at: z.number(), error: z.string().nullable() }).nullable().default(null),
})

/** The estimated cloud time and the wall clock at the same instant, milliseconds. */
const ClockMark = z.object({
  cloud: z.number(),
  /** A lower bound of the cloud's time: its last report plus the running time of the hub since. */
  least: z.number().optional(),
  wall: z.number(),
})

/**
 * Defaults for a config of another version that this version cannot read completely. The hub sells nothing,
 * and no order is late.
 */
const cautious: HubConfig = {
  accepting_orders: false,
  disabled_bins: [],
  disabled_fridges: [],
  confirmed_fridges: [],
  prepare_timeout_ms: Number.MAX_SAFE_INTEGER,
  unclaimed_timeout_ms: Number.MAX_SAFE_INTEGER,
  people: [],
}

/** The stored configuration. If it cannot be read as a whole, it is read field by field. */
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

/** See `FirmwareAttempt`. */
const Attempt = z.object({
  kind: z.string(),
  build: z.int(),
  sum: z.string(),
  memory: z.string().optional(),
  tries: z.int(),
  error: z.string().nullable(),
  rollout: z.string().nullable().optional(),
  release: z.string().optional(),
  again: z.string().nullable().optional(),
  untaken: z.object({ rollout: z.string(), orders: z.int() }).optional(),
  boards: z.int().optional(),
  isOrdered: z.literal(true).optional(),
  isSilent: z.literal(true).optional(),
})

/** The hub's single facts by key in table `meta`, each with its default. */
const facts = {
  /** This store has applied the cloud's snapshot. Before that the hub neither sells nor dispenses. */
  live: z.boolean().default(false),
  /** This store has times of a former journal (`carry-over.ts`). */
  carried: z.boolean().default(false),
  /** Why this store has no times of the former journal; null once it is reported. */
  former_loss: z.string().nullable().default(null),
  /** The id of this store; a copy of it has the same. */
  store_id: z.string().nullable().default(null),
  /** Parts that a person at the hub took out of service. The cloud's configuration does not change them. */
  held: Held.default({ orders: false, bins: [] }),
  /** The ledger's epoch began without a snapshot. The snapshot follows once its content is certain (MQTT SPEC §4). */
  owes_snapshot: z.boolean().default(false),
  /** The names of the doors that were last seen open. */
  open_doors: z.array(z.string()).default([]),
  life: Life.default({ isOpen: false, crashes: [], words: null, restarts: 0, last: null }),
  /** The last stored clock mark. */
  clock: ClockMark.nullable().default(null),
  /** The rollout of the latest confirmed release; `rollout` is null if no rollout brought it. */
  confirmed_release: z.object({ rollout: z.string().nullable() }).nullable().default(null),
  /** By controller: the update of its firmware that has begun, or that was given up. */
  firmware: z.record(z.string(), Attempt).default({}),
}

type FactKey = keyof typeof facts
export type Fact<K extends FactKey> = z.output<(typeof facts)[K]>

/** The single facts of the hub. Each is parsed once, and again after a change. */
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

  /**
   * False if another version of the service stored a configuration that this version cannot read. The cloud
   * must send it again.
   */
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
