import type BetterSqlite3 from 'better-sqlite3'
import type { Checkpoint } from '../../../../protocol/model/checkpoint.ts'
import type { CloudEntry } from '../../../../protocol/mqtt/cloud-entries.ts'
import type { Log } from '../../../../protocol/model/log.ts'
import { parseUpTopic } from '../../../../protocol/mqtt/topics.ts'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import type { HubDomain } from '../../../../cloud/gateway/domain.ts'
import { Gateway } from '../../../../cloud/gateway/gateway.ts'
import type { GatewayLimits } from '../../../../cloud/platform/settings/gateway-limits.ts'
import { cloudRefusals, type CloudRefusals } from '../../../../cloud/platform/refusals.ts'
import { openDatabase, type CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { seededChance, type Chance } from '../../../simulation/chance.ts'
import { Network } from '../../../simulation/network.ts'
import { Crash, Scheduler, type Life } from '../../../simulation/scheduler.ts'
import { emptySqlite } from '../../support/database.ts'
import { ScriptedHub } from './scripted-hub.ts'
import { seedHub } from './seed-hub.ts'
import { testContext } from '../../support/context.ts'

export interface CloudProcess {
  life: Life
  gateway: Gateway
  context: CloudContext
  refusals: CloudRefusals
  /** Errors of turns that nobody waits for, crashes apart. */
  faults: unknown[]
  /** Hubs that it has heard; to be cleared by the test. */
  heard: Set<number>
}

export interface ProcessOptions {
  processId?: string
  domain?: Partial<HubDomain>
  settings?: Partial<GatewayLimits>
  checkpoint?: Checkpoint
  log?: Log
  /** Milliseconds by which its wall clock is wrong. */
  wallOffset?: () => number
}

/** Long enough for what the network delivers in another order to come again. Milliseconds. */
export const SETTLED = 2_500

/** Cloud processes, hubs and a broker under one scheduler and a virtual clock, on one SQLite database. */
export class World {
  readonly scheduler = new Scheduler()
  readonly chance: Chance
  readonly network: Network
  readonly db: CloudDatabase
  /** Whether its processes share the hubs; else there is to be but one. */
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

  /** With one cloud process, and a hub that it has welcomed. */
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
    const runtime = {
      clock: this.scheduler.clock(life, options.wallOffset ?? (() => 0)),
      random: this.chance.fork(),
    }
    const context = testContext(db, runtime, {
      checkpoint,
      ...(options.log && { log: options.log }),
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
    confirmed_fridges: [],
    prepare_timeout_ms: 0,
    unclaimed_timeout_ms: 0,
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

/** A domain that takes everything and does nothing, but that it takes down each alarm, as often as it comes. */
export const inertDomain: HubDomain = {
  applyMaintenanceEntry: () => Promise.resolve(),
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

/** A checkpoint that crashes `life` the `nth` time it comes to `point`. */
export function crashAt(point: string, life: () => Life, nth = 1): Checkpoint {
  let left = nth
  return (at) => {
    if (at === point && --left === 0) throw new Crash(life(), point)
  }
}
