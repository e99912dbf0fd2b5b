import { sql } from 'kysely'
import { join } from 'node:path'
import type { CommerceServices } from '../../cloud/commerce/services.ts'
import { rolloutWork } from '../../cloud/operations/releases/rollouts.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import type { WorkKinds } from '../../cloud/platform/work/runner.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { testContext } from '../world/context.ts'
import { Bank } from './bank.ts'
import { Board } from './board.ts'
import { seededChance, type Chance } from './chance.ts'
import { freshBooks, HUBS } from './cloud-books.ts'
import { CloudNode } from './cloud-node.ts'
import { CloudStore } from './cloud-store.ts'
import { Coverage } from './coverage.ts'
import { CrashPoints } from './crash-points.ts'
import { MemoryServer, PostgresServer, type DatabaseServer } from './database-server.ts'
import { firstReleases, Fleet, fleetRules, RELEASES_URL } from './fleet.ts'
import { HubNode, type HubParts } from './hub-node.ts'
import { drawLimits, type Limits } from './limits.ts'
import { Network } from './network.ts'
import { Room } from './room.ts'
import { Scheduler, type Life } from './scheduler.ts'
import { powerCut } from './site-blows.ts'
import { trackKeys } from './tracked-keys.ts'
import { Watch } from './watch.ts'
import { memories, type Memory, type Site, type Stage } from './stage.ts'

/** The age of the first certificates, as a part of their lifetime. They are renewed at two thirds. */
const FIRST_AGE = 0.63

export interface WorldOptions {
  /** A server for the cloud's database; without it the database is in memory. */
  postgresUrl?: string | undefined
  /** Number of hubs, each of its own owner (default 2). */
  hubs?: number
  /** Whether the hubs are enrolled, renewed, revoked and updated. */
  hasFleet?: boolean
  /** Limits in place of the seed's own limits. */
  limits?: Limits
  /** Due work of the cloud beside the work of commerce. */
  moreWork?: (context: CloudContext) => WorkKinds
  /** Folder of the hubs' journals; without it they are in memory. */
  journals?: string
  /** Time between two attempts of a hub to renew its certificate, and between two checks of sessions by the broker. */
  renewAgainMs?: number
  /** See `SimulatedHubOptions`. */
  pace?: number
  /** How many times rarer programs crash than in a storm. */
  rarity?: number
  /** Time between two polls of the observer. */
  watchMs?: number
}

/** Hubs, two processes of the cloud, and all parts around them. */
export class World implements Stage {
  readonly scheduler = new Scheduler()
  readonly coverage = new Coverage()
  readonly chance: Chance
  readonly network: Network
  readonly sites: readonly Site[]
  readonly clouds: readonly CloudNode[]
  readonly store: CloudStore
  readonly bank: Bank
  readonly limits: Limits
  readonly mayLose: Memory
  readonly watch: Watch
  readonly impostors = new Set<HubNode>()
  readonly fleet: Fleet | undefined
  readonly #crashes: Readonly<Record<'hub' | 'cloud' | 'updater', CrashPoints>>
  readonly #options: WorldOptions
  readonly #releases = firstReleases()
  readonly #life: Life
  readonly #server: DatabaseServer
  #stormy = true

  static async create(seed: number, options: WorldOptions = {}): Promise<World> {
    const { postgresUrl, hubs = HUBS.length, hasFleet } = options
    const server = postgresUrl ? await PostgresServer.create(postgresUrl) : await MemoryServer.create(hubs)
    const world = new World(seed, server, await freshBooks(hubs), options)
    if (hasFleet) await trackKeys(world.scheduler)
    return world
  }

  private constructor(seed: number, server: DatabaseServer, books: Buffer, options: WorldOptions) {
    const chance = seededChance(seed)
    // Apart from the others, so that a seed has the same events without a fleet.
    const fleetChance = seededChance(seed ^ 0x51f7ee7)
    this.#options = options
    const { rarity = 1 } = options
    this.#server = server
    const { scheduler, coverage } = this
    this.chance = chance
    this.#life = scheduler.newLife('world', () => {})
    this.network = new Network(scheduler, chance.fork())
    this.limits = { ...drawLimits(chance.fork()), ...options.limits }
    if (options.hasFleet && !options.limits) this.limits.rules = { ...this.limits.rules, ...fleetRules }
    this.mayLose = chance.pick(memories)
    this.store = new CloudStore({ scheduler, coverage, chance: chance.fork() }, server)
    this.bank = new Bank(
      {
        scheduler,
        coverage,
        chance: chance.fork(),
        settings: this.limits.rules,
        receiver: () => this.#anyNode(),
      },
      books,
    )
    this.#crashes = {
      hub: new CrashPoints('hub', chance.fork(), coverage, chance.pick([60, 250, 1000]) * rarity),
      cloud: new CrashPoints('cloud', chance.fork(), coverage, chance.pick([100, 350, 1400]) * rarity),
      updater: new CrashPoints('updater', fleetChance, coverage, 20),
    }
    this.sites = Array.from({ length: options.hubs ?? HUBS.length }, (_, index) => this.#openSite(index + 1))
    this.clouds = ['cloud-a', 'cloud-b'].map((name) => this.#openCloud(name))
    this.watch = new Watch(this, options.watchMs)
    if (this.limits.image) this.sites.forEach((site) => this.#cutUpdates(site))
    if (options.hasFleet) this.fleet = this.#openFleet(fleetChance.fork())
  }

  #openFleet(random: Chance): Fleet {
    const { scheduler, store, limits, clouds } = this
    const clock = scheduler.clock(this.#life, () => clouds[0]!.wallOffset)
    const operator = testContext(store.reader, { clock, random }, { settings: limits.rules })
    return new Fleet(this, operator, this.#releases)
  }

  #openSite(hubId: number): Site {
    const { healthShutoffMs, fridgeProofMs } = this.limits.hub.core
    const proofMs = Math.min(fridgeProofMs, healthShutoffMs / 4)
    const room = new Room(this.scheduler, this.chance.fork(), hubId, {
      limitCelsius: 5,
      healthShutoffMs,
      proofMs,
      warmingMs: 600_000 * (this.#options.pace ?? 1),
      pace: this.#options.pace,
    })
    const { hasFleet, journals } = this.#options
    const board = hasFleet ? this.#openBoard(hubId) : undefined
    const path = journals === undefined ? undefined : join(journals, `hub-${hubId}.sqlite`)
    return { hubId, room, hub: this.#openHub(hubId, room, { board, path }) }
  }

  /** Power cuts of controllers within their updates. */
  #cutUpdates({ room }: Site): void {
    const chance = this.chance.fork()
    room.onUpdate = (controller) => {
      if (!this.#stormy || !chance.happens(0.1)) return
      this.coverage.hit('fault power cut in an update')
      room.plan(chance.between(0, 20), () => room.hub.power('off', controller, chance.between(300, 3000)))
    }
  }

  #openBoard(hubId: number): Board {
    const { scheduler, coverage, network } = this
    return new Board({
      scheduler,
      coverage,
      crashPoints: this.#crashes.updater,
      releases: this.#releases,
      isConnected: () => !network.severed.has(hubUser(hubId)) && this.anyCloud() !== undefined,
      cutPower: () => powerCut(this, this.sites[hubId - 1]!),
      renewAgainMs: this.#options.renewAgainMs ?? 20_000,
    })
  }

  #openHub(
    hubId: number,
    room: Room,
    more: Pick<HubParts, 'board' | 'card' | 'certificate' | 'path'>,
  ): HubNode {
    const { scheduler, network, coverage, chance } = this
    const { hub: settings, image } = this.limits
    const crashPoints = this.#crashes.hub
    const parts = {
      scheduler,
      network,
      room,
      coverage,
      crashPoints,
      hubId,
      settings,
      image,
      chance: chance.fork(),
    }
    return new HubNode({ ...parts, ...more })
  }

  readonly openImpostor = (hubId: number, card: Buffer, room: Room): HubNode => {
    const certificate = this.sites[hubId - 1]!.hub.board?.certificate()
    return this.#openHub(hubId, room, { card, certificate })
  }

  readonly openWorkshop = (hubId: number): Room => {
    const room = new Room(this.scheduler, this.chance.fork(), hubId)
    room.hub.power('off')
    return room
  }

  #openCloud(name: string): CloudNode {
    const { scheduler, network, coverage, store, bank, limits, chance } = this
    const crashPoints = this.#crashes.cloud
    const { moreWork: more, hasFleet } = this.#options
    const moreWork = (context: CloudContext): WorkKinds => ({
      ...(hasFleet && rolloutWork(context, RELEASES_URL)),
      ...more?.(context),
    })
    const parts = { name, scheduler, network, coverage, crashPoints, store, bank, settings: limits }
    return new CloudNode({ ...parts, chance: chance.fork(), moreWork })
  }

  start(): void {
    this.bank.start()
    for (const cloud of this.clouds) cloud.start()
    if (this.fleet) this.plan(0, () => this.#startFleet(this.fleet!))
    else for (const { hub } of this.sites) hub.start()
    this.watch.start()
  }

  /** Enrols every board. Its certificate is so old that it is renewed soon. */
  async #startFleet(fleet: Fleet): Promise<void> {
    const lifetimeMs = this.limits.rules.hubCertificateMs
    for (const site of this.sites) {
      await fleet.enrol(site, lifetimeMs * FIRST_AGE)
      if (site.hub.heldDown) continue
      site.hub.board!.boot()
      site.hub.start()
    }
    this.#checkSessions()
  }

  #checkSessions(): void {
    this.plan(3 * (this.#options.renewAgainMs ?? 20_000), async () => {
      await this.network.endLogins()
      this.#checkSessions()
    })
  }

  close(): Promise<void> {
    return this.#server.close()
  }

  endStorm(absent: Site | undefined): void {
    this.#stormy = false
    for (const points of Object.values(this.#crashes)) points.armed = false
    this.watch.calm(absent)
  }

  readonly isStormy = (): boolean => this.#stormy

  readonly plan = (delayMs: number, run: () => unknown): void =>
    void this.scheduler.plan(this.#life, delayMs, run)

  readonly sleep = (ms: number): Promise<void> => new Promise((resolve) => this.plan(ms, resolve))

  readonly anyCloud = (): CommerceServices | undefined => this.#anyNode()?.services

  #anyNode(): CloudNode | undefined {
    const up = this.clouds.filter(({ services }) => services !== undefined)
    return up.length === 0 ? undefined : this.chance.pick(up)
  }

  /**
   * Runs until no order is active and no entry waits, at most for `atMostMs`; the invariants report the rest.
   */
  async runUntilQuiet(atMostMs: number): Promise<void> {
    const { scheduler } = this
    const end = scheduler.time + atMostMs
    do await scheduler.run(scheduler.time + 20_000)
    while (scheduler.time < end && scheduler.failure === undefined && !(await this.#isQuiet()))
  }

  async #isQuiet(): Promise<boolean> {
    return this.sites.every(({ hub }) => hub.isQuiet()) && (await this.#isCloudQuiet())
  }

  /** No active order, no unconfirmed payment, deposit or refund, no unacknowledged entry of a hub. */
  async #isCloudQuiet(): Promise<boolean> {
    const { rows } = await sql<{ waiting: number }>`
      select (select count(*) from orders where processing_status <= 50)
           + (select count(*) from payments where status in ('pending', 'requires_action'))
           + (select count(*) from due_work where kind like 'money/%')
           + (select count(*) from ledger_entries where status = 'pending')
           + (select count(*) from hub_outboxes where base < last) as waiting`.execute(
      this.store.reader.kysely,
    )
    return rows[0]!.waiting === 0
  }
}
