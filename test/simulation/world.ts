import { sql } from 'kysely'
import type { CommerceServices } from '../../cloud/commerce/services.ts'
import { Bank } from './bank.ts'
import { seededChance, type Chance } from './chance.ts'
import { freshBooks, HUBS } from './cloud-books.ts'
import { CloudNode } from './cloud-node.ts'
import { CloudStore } from './cloud-store.ts'
import { Coverage } from './coverage.ts'
import { CrashPoints } from './crash-points.ts'
import { MemoryServer, PostgresServer, type DatabaseServer } from './database-server.ts'
import { HubNode } from './hub-node.ts'
import { drawLimits, type Limits } from './limits.ts'
import { Network } from './network.ts'
import { Room } from './room.ts'
import { Scheduler, type Life } from './scheduler.ts'
import { Watch } from './watch.ts'
import { memories, type Memory, type Site, type Stage } from './stage.ts'

/** Two hubs, two processes of the cloud, and all parts around them. */
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
  readonly #crashes: Readonly<Record<'hub' | 'cloud', CrashPoints>>
  readonly #life: Life
  readonly #server: DatabaseServer
  #stormy = true

  /** `postgresUrl`: a server for the cloud's database; without it the database is in memory. */
  static async create(seed: number, postgresUrl?: string): Promise<World> {
    const server = postgresUrl ? await PostgresServer.create(postgresUrl) : await MemoryServer.create()
    return new World(seededChance(seed), server, await freshBooks())
  }

  private constructor(chance: Chance, server: DatabaseServer, books: Buffer) {
    this.#server = server
    const { scheduler, coverage } = this
    this.chance = chance
    this.#life = scheduler.newLife('world', () => {})
    this.network = new Network(scheduler, chance.fork())
    this.limits = drawLimits(chance.fork())
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
      hub: new CrashPoints('hub', chance.fork(), coverage, chance.pick([60, 250, 1000])),
      cloud: new CrashPoints('cloud', chance.fork(), coverage, chance.pick([100, 350, 1400])),
    }
    this.sites = HUBS.map((hubId) => this.#openSite(hubId))
    this.clouds = ['cloud-a', 'cloud-b'].map((name) => this.#openCloud(name))
    this.watch = new Watch(this)
    if (this.limits.image) this.sites.forEach((site) => this.#cutUpdates(site))
  }

  #openSite(hubId: number): Site {
    const { healthShutoffMs, fridgeProofMs } = this.limits.hub.core
    const proofMs = Math.min(fridgeProofMs, healthShutoffMs / 4)
    const room = new Room(this.scheduler, this.chance.fork(), hubId, {
      limitCelsius: 5,
      healthShutoffMs,
      proofMs,
      warmingMs: 600_000,
    })
    return { hubId, room, hub: this.#openHub(hubId, room) }
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

  #openHub(hubId: number, room: Room, card?: Buffer): HubNode {
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
    return new HubNode({ ...parts, ...(card && { card }) })
  }

  readonly openImpostor = (hubId: number, card: Buffer, room: Room): HubNode =>
    this.#openHub(hubId, room, card)

  readonly openWorkshop = (hubId: number): Room => {
    const room = new Room(this.scheduler, this.chance.fork(), hubId)
    room.hub.power('off')
    return room
  }

  #openCloud(name: string): CloudNode {
    const { scheduler, network, coverage, store, bank, limits, chance } = this
    const crashPoints = this.#crashes.cloud
    const parts = { name, scheduler, network, coverage, crashPoints, store, bank, settings: limits }
    return new CloudNode({ ...parts, chance: chance.fork() })
  }

  start(): void {
    this.bank.start()
    for (const cloud of this.clouds) cloud.start()
    for (const { hub } of this.sites) hub.start()
    this.watch.start()
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
