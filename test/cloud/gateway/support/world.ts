import type BetterSqlite3 from 'better-sqlite3'
import type { Checkpoint } from '../../../../protocol/model/checkpoint.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import type { CloudEntry } from '../../../../protocol/mqtt/cloud-entries.ts'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import type { HubDomain } from '../../../../cloud/gateway/domain.ts'
import { Gateway } from '../../../../cloud/gateway/gateway.ts'
import type { GatewaySettings } from '../../../../cloud/platform/settings/settings.ts'
import { defaultSettings } from '../../../../cloud/platform/settings/settings.ts'
import { cloudRefusals, type CloudRefusals } from '../../../../cloud/platform/refusals.ts'
import { openDatabase, type CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { seededChance, type Chance } from '../../../simulation/chance.ts'
import { Network } from '../../../simulation/network.ts'
import { Crash, Scheduler, type Life } from '../../../simulation/scheduler.ts'
import { emptySqlite } from '../../support/database.ts'
import { ScriptedHub } from './scripted-hub.ts'
import { seedHub } from './seed-hub.ts'

export interface CloudProcess {
  life: Life
  gateway: Gateway
  context: CloudContext
  refusals: CloudRefusals
  /** Errors of turns that nobody waits for, crashes apart. */
  faults: unknown[]
}

export interface ProcessOptions {
  processId?: string
  domain?: Partial<HubDomain>
  settings?: Partial<GatewaySettings>
  checkpoint?: Checkpoint
  /** Milliseconds by which its wall clock is wrong. */
  wallOffset?: () => number
}

/** Cloud processes, hubs and a broker under one scheduler and a virtual clock, on one SQLite database. */
export class World {
  readonly scheduler = new Scheduler()
  readonly chance: Chance
  readonly network: Network
  readonly db: CloudDatabase
  readonly #sqlite: BetterSqlite3.Database

  private constructor(sqlite: BetterSqlite3.Database, seed: number) {
    this.chance = seededChance(seed)
    this.network = new Network(this.scheduler, this.chance)
    this.#sqlite = sqlite
    this.db = openDatabase({ url: 'sqlite::memory:', sqlite })
  }

  static async create(hubIds: readonly number[] = [1], seed = 1): Promise<World> {
    const world = new World(await emptySqlite(), seed)
    for (const hubId of hubIds) await seedHub(world.db, hubId)
    return world
  }

  /** Starts a cloud process. Its crash points are `checkpoint`'s, which may throw `crash(life)`. */
  startCloud(name: string, options: ProcessOptions = {}): CloudProcess {
    const life = this.scheduler.newLife(name, () => {})
    const checkpoint: Checkpoint = (point) => {
      // What a dead process still has under way in memory must not reach the store.
      if (!life.alive) throw new Crash(life, point)
      options.checkpoint?.(point)
    }
    // A process that crashed in mid-transaction leaves it to be undone by the next.
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: this.#sqlite, checkpoint })
    const faults: unknown[] = []
    const context: CloudContext = {
      db,
      runtime: {
        clock: this.scheduler.clock(life, options.wallOffset ?? (() => 0)),
        random: this.chance.fork(),
      },
      log: silentLog,
      checkpoint,
      settings: { ...defaultSettings },
      onFault: (error) => {
        if (error instanceof Crash) this.scheduler.report(error, life)
        else faults.push(error)
      },
    }
    const refusals = cloudRefusals(context)
    const gateway = new Gateway({
      context,
      refusals,
      openTransport: this.network.transportFor(name, life),
      processId: options.processId ?? name,
      domain: { ...inertDomain, ...options.domain },
      settings: options.settings ?? {},
    })
    gateway.start()
    return { life, gateway, context, refusals, faults }
  }

  /** A hub that does as it is told. */
  hub(hubId = 1): ScriptedHub {
    const life = this.scheduler.newLife(`hub-${hubId}`, () => {})
    return new ScriptedHub({
      hubId,
      clock: this.scheduler.clock(life, () => 0),
      chance: this.chance.fork(),
      openTransport: this.network.transportFor(`hub-${hubId}`, life),
    })
  }

  /** Lets `ms` pass, after what the test itself has set off. */
  async pass(ms: number): Promise<void> {
    await new Promise((resolve) => void setImmediate(resolve))
    await this.scheduler.run(this.scheduler.time + ms)
    if (this.scheduler.failure !== undefined) throw this.scheduler.failure
  }

  kill(process: CloudProcess): void {
    this.scheduler.kill(process.life, 'test')
    this.network.cut((life) => life === process.life, 'killed')
  }
}

const emptySnapshot: CloudEntry = {
  kind: 'snapshot',
  config: {
    accepting_orders: true,
    disabled_bins: [3],
    disabled_fridges: [],
    prepare_timeout_ms: 0,
    unclaimed_timeout_ms: 0,
  },
  facings: [],
  stock: [],
  known_operations: [],
  counts: [],
  orders: [],
}

/** A domain that takes everything and does nothing. */
export const inertDomain: HubDomain = {
  applyOrderEntry: () => Promise.resolve(),
  applyStockEntries: () => Promise.resolve(),
  applyOperationEntry: () => Promise.resolve(),
  applySnapshot: () => Promise.resolve(),
  hubSnapshot: () => Promise.resolve(emptySnapshot),
}

/** A checkpoint that crashes `life` the `nth` time it comes to `point`. */
export function crashAt(point: string, life: () => Life, nth = 1): Checkpoint {
  let left = nth
  return (at) => {
    if (at === point && --left === 0) throw new Crash(life(), point)
  }
}
