import type BetterSqlite3 from 'better-sqlite3'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { CloudEntry } from '../../protocol/mqtt/cloud-entries.ts'
import type { Log } from '../../protocol/model/log.ts'
import { parseUpTopic } from '../../protocol/mqtt/topics.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import { noteMoved } from '../../cloud/operations/ownership/next-cell.ts'
import type { HubDomain } from '../../cloud/gateway/domain.ts'
import { Gateway } from '../../cloud/gateway/gateway.ts'
import type { GatewayLimits } from '../../cloud/platform/settings/gateway-limits.ts'
import { cloudRefusals, type CloudRefusals } from '../../cloud/platform/refusals.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { seededChance, type Chance } from '../simulation/chance.ts'
import { Network } from '../simulation/network.ts'
import { Crash, Scheduler, type Life } from '../simulation/scheduler.ts'
import { emptySqlite } from './database.ts'
import { ScriptedHub } from './scripted-hub.ts'
import { seedHub } from './seeds.ts'
import { testContext } from './context.ts'

export interface CloudProcess {
  life: Life
  gateway: Gateway
  context: CloudContext
  refusals: CloudRefusals
  /** Errors of background turns, except crashes. */
  faults: unknown[]
  /** Hubs with a received message; the test clears it. */
  heard: Set<number>
}

export interface ProcessOptions {
  processId?: string
  domain?: Partial<HubDomain>
  settings?: Partial<GatewayLimits>
  checkpoint?: Checkpoint
  log?: Log
  /** Its cell; 0 by default. */
  cell?: number
  /** Error of its wall clock in milliseconds. */
  wallOffset?: () => number
}

/** Time until delayed messages have arrived, in milliseconds. */
export const SETTLED = 2_500

/** Cloud processes, hubs and a broker under one scheduler and a virtual clock, on one SQLite database. */
export class World {
  readonly scheduler = new Scheduler()
  readonly chance: Chance
  readonly network: Network
  readonly db: CloudDatabase
  /** Whether the processes share the hubs; otherwise only one process is allowed. */
  isShared = false
  readonly #sqlite: BetterSqlite3.Database

  private constructor(sqlite: BetterSqlite3.Database, seed: number) {
    this.chance = seededChance(seed)
    this.network = new Network(this.scheduler, this.chance)
    this.network.ordered = true
    this.#sqlite = sqlite
    this.db = openDatabase({ url: 'sqlite::memory:', sqlite })
  }

  static async create(hubIds: readonly number[] = [1], seed = 1): Promise<World> {
    const world = new World(await emptySqlite(), seed)
    for (const hubId of hubIds) await seedHub(world.db, hubId)
    return world
  }

  /** A world with one cloud process and a welcomed hub. */
  static async connected(
    options: ProcessOptions = {},
  ): Promise<{ world: World; cloud: CloudProcess; hub: ScriptedHub }> {
    const world = await World.create()
    const cloud = world.startCloud('cloud', options)
    const hub = world.hub()
    await world.pass(100)
    hub.connect()
    await world.pass(SETTLED)
    return { world, cloud, hub }
  }

  /** Starts a cloud process. `checkpoint` may throw `crash(life)` at its crash points. */
  startCloud(name: string, options: ProcessOptions = {}): CloudProcess {
    const life = this.scheduler.newLife(name, () => {})
    const checkpoint: Checkpoint = (point) => {
      // Work in the memory of a dead process must not reach the store.
      if (!life.alive) throw new Crash(life, point)
      options.checkpoint?.(point)
    }
    // A process that crashed in a transaction leaves the rollback to the next one.
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: this.#sqlite, checkpoint })
    const faults: unknown[] = []
    const runtime = {
      clock: this.scheduler.clock(life, options.wallOffset ?? (() => 0)),
      random: this.chance.fork(),
    }
    const context = testContext(db, runtime, {
      checkpoint,
      ...(options.log && { log: options.log }),
      settings: { ...defaultLimits.rules, cell: options.cell ?? 0 },
      onFault: (error) => {
        if (error instanceof Crash) this.scheduler.report(error, life)
        else faults.push(error)
      },
    })
    const refusals = cloudRefusals(context)
    const heard = new Set<number>()
    const open = this.network.transportFor(name, life)
    const listening: typeof open = (options, handlers) =>
      open(options, {
        ...handlers,
        onMessage(topic, payload) {
          const { hubId } = parseUpTopic(topic) ?? {}
          if (hubId !== undefined) heard.add(hubId)
          return handlers.onMessage(topic, payload)
        },
      })
    const gateway = new Gateway({
      context,
      refusals,
      broker: { kind: this.isShared ? 'shared' : 'own', open: listening },
      processId: options.processId ?? name,
      domain: { ...inertDomain, ...options.domain },
      settings: options.settings ?? {},
    })
    gateway.start()
    return { life, gateway, context, refusals, faults, heard }
  }

  /** A hub that is driven by the test. */
  hub(hubId = 1): ScriptedHub {
    const life = this.scheduler.newLife(`hub-${hubId}`, () => {})
    return new ScriptedHub({
      hubId,
      clock: this.scheduler.clock(life, () => 0),
      chance: this.chance.fork(),
      openTransport: this.network.transportFor(`hub-${hubId}`, life),
    })
  }

  /** Lets `ms` pass, after pending work of the test. */
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
    confirmed_fridges: [],
    prepare_timeout_ms: 0,
    unclaimed_timeout_ms: 0,
    people: [],
  },
  facings: [],
  stock: [],
  known_operations: [],
  counts: [],
  orders: [],
}

const bareAlarm = (id: string) => ({
  id,
  owner_id: 1,
  kind: 'door_forced' as const,
  incident: id,
  key: id,
  severity: 'critical' as const,
  details: '{}',
  count: 1,
  quiet_since: null,
  is_flapping: 0 as const,
  cleared_at: null,
  acknowledged_at: null,
  acknowledged_by: null,
})

/** A domain that accepts every entry, and only records alarms and moves. */
export const inertDomain: HubDomain = {
  certificateRequested() {},
  applyMaintenanceEntry: () => Promise.resolve(),
  applyHardwareEntry: () => Promise.resolve(),
  hubMoved: noteMoved,
  secretsErased: () => Promise.resolve(),
  applyOrderEntry: () => Promise.resolve(),
  applyStockEntries: () => Promise.resolve(),
  applyOperationEntry: () => Promise.resolve(),
  applyStateEntry: () => Promise.resolve(),
  applySnapshot: () => Promise.resolve(),
  booksAreBehind: () => Promise.resolve(),
  async applyAlarmEntries(tx, _context, hubId, entries) {
    const { count } = await tx.q
      .selectFrom('alarms')
      .select((eb) => eb.fn.countAll().as('count'))
      .executeTakeFirstOrThrow()
    await tx.q
      .insertInto('alarms')
      .values(
        entries.map(({ subject, detail, at }, index) => ({
          ...bareAlarm(`${Number(count) + index}`.padStart(6, '0')),
          hub_id: hubId,
          subject,
          message: detail,
          raised_at: Math.round(at),
        })),
      )
      .execute()
  },
  deadLettersChanged: () => {},
  identityConflict: () => Promise.resolve(),
  streamStalled: () => Promise.resolve(),
  hubsHeard: () => Promise.resolve(),
  hubSnapshot: () => Promise.resolve(emptySnapshot),
}

/** A checkpoint that crashes `life` at the `nth` passing of `point`. */
export function crashAt(point: string, life: () => Life, nth = 1): Checkpoint {
  let left = nth
  return (at) => {
    if (at === point && --left === 0) throw new Crash(life(), point)
  }
}

/** Hubs 1 to `count`, not connected yet, and one process of the cloud that counts its transactions. */
export async function countedCloud(
  count: number,
  options: ProcessOptions = {},
): Promise<{ world: World; cloud: CloudProcess; hubs: ScriptedHub[]; commits: () => number }> {
  const hubIds = Array.from({ length: count }, (_, index) => index + 1)
  const world = await World.create(hubIds)
  let commits = 0
  const cloud = world.startCloud('cloud', {
    ...options,
    checkpoint: (point) => void (commits += Number(point === 'db.after-commit')),
  })
  const hubs = hubIds.map((hubId) => world.hub(hubId))
  await world.pass(100)
  return { world, cloud, hubs, commits: () => commits }
}
