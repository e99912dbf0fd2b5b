import { describe, expect, test } from 'vitest'
import type { CommandOutcome } from '../../../cloud/gateway/commands.ts'
import { contender, serverOf } from '../../../cloud/gateway/shares.ts'
import { createMemoryHub, type MemoryHub } from '../../world/memory-hub.ts'
import { seedHub } from '../../world/seeds.ts'
import { alarm } from '../../world/scripted-hub.ts'
import { World, type CloudProcess } from '../../world/gateway.ts'

const HUBS = 40
/**
 * Time limits until a new process has its share, and until the hubs of a lost one are taken over (SPEC §7).
 */
const ADDED_MS = 30_000
const RELIEVED_MS = 5_000
/** Longer than the period of heartbeats, so that each hub reports. */
const HEARD_MS = 20_000
const COMMAND_MS = 100

/** Some cloud processes, and hubs with the real sync that report something each second. */
class Fleet {
  readonly clouds: CloudProcess[] = []
  readonly hubs: MemoryHub[] = []
  readonly outcomes: CommandOutcome[] = []
  /** Acknowledgements of entries to each hub, by their cursor. */
  readonly acks: string[] = []
  readonly hellos = new Map<number, number>()
  #reported = 0

  readonly world: World

  private constructor(world: World) {
    this.world = world
  }

  static async create(processes: readonly string[]): Promise<Fleet> {
    const hubIds = Array.from({ length: HUBS }, (_, index) => index + 1)
    const fleet = new Fleet(await World.create(hubIds))
    fleet.world.isShared = true
    fleet.#listen()
    for (const name of processes) fleet.clouds.push(fleet.world.startCloud(name))
    await fleet.world.pass(3_000)
    for (const hubId of hubIds) fleet.addHub(hubId)
    await fleet.world.pass(10_000)
    expect(fleet.unwelcomed()).toEqual([])
    return fleet
  }

  addHub(hubId: number): void {
    const { world } = this
    const life = world.scheduler.newLife(`hub-${hubId}`, () => {})
    const runtime = { clock: world.scheduler.clock(life, () => 0), random: world.chance.fork() }
    const openTransport = world.network.transportFor(`hub-${hubId}`, life)
    const hub = createMemoryHub({ hubId, runtime, openTransport })
    this.hubs.push(hub)
    hub.sync.start()
  }

  cloud(name: string): CloudProcess {
    return this.clouds.find(({ life }) => life.name === name)!
  }

  unwelcomed(): number[] {
    return this.hubs.filter(({ sync }) => sync.state().phase !== 'welcomed').map(({ hubId }) => hubId)
  }

  /** Each second every hub reports, and every process in `able` sends commands. */
  async serve(ms: number, able: readonly CloudProcess[] = this.clouds): Promise<void> {
    for (let passed = 0; passed < ms; passed += 1_000) {
      for (const hub of this.hubs) hub.report(alarm(`${hub.hubId}-${this.#reported}`))
      this.#reported += 1
      for (const [index, cloud] of able.entries())
        await this.command(cloud, ((this.#reported * 7 + index * 13) % HUBS) + 1)
      await this.world.pass(1_000 - COMMAND_MS * able.length)
    }
  }

  /** One after another: the processes share one connection to their database. */
  async command({ gateway }: CloudProcess, hubId: number): Promise<void> {
    const request = { hubId, body: { name: 'open_bin', bin: 1 }, actor: 'x' } as const
    void gateway.commands.send(request).then((outcome) => this.outcomes.push(outcome))
    await this.world.pass(COMMAND_MS)
  }

  /** The number of leases of each process. */
  async shares(): Promise<Record<string, number>> {
    const rows = await this.world.db.kysely
      .selectFrom('hub_sessions')
      .select(['process_id', (eb) => eb.fn.countAll<number>().as('hubs')])
      .where('lease_until', '>', this.world.scheduler.clock(this.clouds[0]!.life, () => 0).now())
      .groupBy('process_id')
      .execute()
    return Object.fromEntries(rows.map((row) => [row.process_id, row.hubs]))
  }

  /** Lets time pass until every hub is served by its process among these; returns the time. */
  async settled(processes: readonly string[], limitMs: number): Promise<number> {
    for (let passed = 0; passed <= limitMs; passed += 100) {
      const rows = await this.world.db.kysely
        .selectFrom('hub_sessions')
        .select(['hub_id', 'process_id'])
        .execute()
      const contenders = processes.map(contender)
      if (rows.every((row) => serverOf(row.hub_id, contenders) === row.process_id)) return passed
      await this.world.pass(100)
    }
    return Infinity
  }

  /** Checks that every entry arrived once, every hub is served, and every command was executed once. */
  async expectWhole(): Promise<void> {
    await this.world.pass(15_000)
    expect(this.unwelcomed()).toEqual([])
    expect(this.hubs.filter((hub) => hub.pending() > 0)).toEqual([])
    const rows = await this.world.db.kysely.selectFrom('alarms').select('subject').execute()
    expect(new Set(rows.map(({ subject }) => subject)).size).toBe(rows.length)
    expect(rows.length).toBe(HUBS * this.#reported)
    for (const { executed } of this.hubs) expect(new Set(executed).size).toBe(executed.length)
    expect(this.clouds.flatMap(({ faults }) => faults)).toEqual([])
  }

  #listen(): void {
    const ear = this.world.scheduler.newLife('ear', () => {})
    this.world.network.transportFor('ear', ear)(
      { subscribe: ['larder/v1/+/down/ack', 'larder/v1/+/up/hello'] },
      {
        onConnect() {},
        onDisconnect() {},
        onMessage: (topic, payload) => {
          const hubId = Number(/hub-(\d+)/.exec(topic)![1])
          if (topic.endsWith('hello')) return void this.hellos.set(hubId, (this.hellos.get(hubId) ?? 0) + 1)
          const { stream, cursor } = JSON.parse(payload) as { stream: string; cursor: number }
          if (stream === 'ledger') this.acks.push(`${hubId} ${cursor}`)
        },
      },
    )
  }
}

describe('shares of the fleet', () => {
  test('each of three processes receives the messages of exactly the hubs that it serves', async () => {
    const fleet = await Fleet.create(['a', 'b', 'c'])
    await fleet.world.pass(5_000)
    for (const cloud of fleet.clouds) cloud.heard.clear()
    await fleet.world.pass(HEARD_MS)
    const contenders = ['a', 'b', 'c'].map(contender)
    for (const { life, heard } of fleet.clouds) {
      expect(heard.size).toBeGreaterThan(HUBS / 6)
      expect([...heard].filter((hubId) => serverOf(hubId, contenders) !== life.name)).toEqual([])
    }
    expect(await fleet.shares()).toEqual(
      Object.fromEntries(fleet.clouds.map(({ life, heard }) => [life.name, heard.size])),
    )
    await fleet.expectWhole()
  })

  test('a new process has its share within 30 s; no hub is welcomed again, no command is answered twice, commands continue', async () => {
    const fleet = await Fleet.create(['a', 'b'])
    fleet.hellos.clear()
    fleet.clouds.push(fleet.world.startCloud('c'))
    expect(await fleet.settled(['a', 'b', 'c'], ADDED_MS)).toBeLessThan(ADDED_MS)
    await fleet.serve(10_000)
    expect(await fleet.shares()).toEqual({
      a: expect.any(Number),
      b: expect.any(Number),
      c: expect.any(Number),
    })
    expect([...fleet.hellos]).toEqual([])
    expect(new Set(fleet.acks).size).toBe(fleet.acks.length)
    expect(fleet.outcomes.filter(({ kind }) => kind !== 'executed')).toEqual([])
    expect(fleet.outcomes.length).toBeGreaterThanOrEqual(27)
    await fleet.expectWhole()
  })

  test('reports of hubs that move between processes are applied once, within seconds', async () => {
    const fleet = await Fleet.create(['a', 'b'])
    fleet.clouds.push(fleet.world.startCloud('c'))
    const busy = fleet.serve(8_000, [fleet.cloud('a'), fleet.cloud('b')])
    await busy
    expect(await fleet.settled(['a', 'b', 'c'], 0)).toBe(0)
    expect(fleet.outcomes.filter(({ kind }) => kind !== 'executed')).toEqual([])
    await fleet.world.pass(2_000)
    expect(fleet.hubs.filter((hub) => hub.pending() > 0)).toEqual([])
    await fleet.expectWhole()
  })

  test.each<[how: string, ends: (fleet: Fleet) => unknown, takeOverMs: number]>([
    ['stops gracefully', (fleet) => fleet.cloud('c').gateway.stop(), 1_000],
    ['is killed, because of its will,', (fleet) => fleet.world.kill(fleet.cloud('c')), 1_000],
    [
      'dies without a will',
      (fleet) => fleet.world.scheduler.kill(fleet.cloud('c').life, 'power'),
      RELIEVED_MS + 1,
    ],
  ])('the hubs of a process that %s are taken over within 5 s', async (_how, ends, takeOverMs) => {
    const fleet = await Fleet.create(['a', 'b', 'c'])
    const ended = ends(fleet)
    expect(await fleet.settled(['a', 'b'], RELIEVED_MS)).toBeLessThan(takeOverMs)
    await ended
    await fleet.serve(5_000, [fleet.cloud('a'), fleet.cloud('b')])
    expect(fleet.outcomes.filter(({ kind }) => kind !== 'executed')).toEqual([])
    await fleet.expectWhole()
  })

  test('the hubs of a process without a broker are taken over within 5 s, and return when it is connected again', async () => {
    const fleet = await Fleet.create(['a', 'b', 'c'])
    fleet.world.network.severe('c', true)
    expect(await fleet.settled(['a', 'b'], RELIEVED_MS)).toBeLessThanOrEqual(RELIEVED_MS)
    await fleet.serve(10_000, [fleet.cloud('a'), fleet.cloud('b')])
    fleet.world.network.severe('c', false)
    expect(await fleet.settled(['a', 'b', 'c'], ADDED_MS)).toBeLessThan(ADDED_MS)
    await fleet.serve(10_000)
    expect(fleet.outcomes.filter(({ kind }) => kind !== 'executed')).toEqual([])
    await fleet.expectWhole()
  })

  test('a restart of the broker moves no hub to another process', async () => {
    const fleet = await Fleet.create(['a', 'b', 'c'])
    const before = await fleet.shares()
    fleet.world.network.killBroker()
    await fleet.world.pass(500)
    fleet.world.network.startBroker()
    for (let seconds = 0; seconds < 15; seconds += 1) {
      await fleet.world.pass(1_000)
      expect(await fleet.shares()).toEqual(before)
    }
    await fleet.expectWhole()
  })

  test('a process that reads slowly regards every other process as alive', async () => {
    const fleet = await Fleet.create(['a', 'b'])
    const before = await fleet.shares()
    // Messages to one of them are delayed by ten seconds: the others' beats, and its own.
    fleet.world.network.weather = { loss: 0, duplicate: 0, delay: 0.3, maxDelayMs: 10_000 }
    for (let seconds = 0; seconds < 30; seconds += 1) {
      await fleet.world.pass(1_000)
      expect(await fleet.shares()).toEqual(before)
    }
    fleet.world.network.weather = { loss: 0, duplicate: 0, delay: 0, maxDelayMs: 0 }
    await fleet.expectWhole()
  })

  test('a process without a database serves no hub: the others take over its hubs, and return them', async () => {
    const fleet = await Fleet.create(['a', 'b', 'c'])
    const { context } = fleet.cloud('c')
    const { db } = context
    const away = new Proxy(db, {
      get(target, key, receiver): unknown {
        if (key === 'kysely' || key === 'transact') throw new Error('the database is away')
        return Reflect.get(target, key, receiver)
      },
    })
    context.db = away
    expect(await fleet.settled(['a', 'b'], 30_000)).toBeLessThan(30_000)
    await fleet.serve(5_000, [fleet.cloud('a'), fleet.cloud('b')])
    context.db = db
    expect(await fleet.settled(['a', 'b', 'c'], ADDED_MS)).toBeLessThan(ADDED_MS)
    fleet.cloud('c').faults.length = 0
    await fleet.expectWhole()
  })

  test('a new hub is served within seconds', async () => {
    const fleet = await Fleet.create(['a', 'b'])
    await seedHub(fleet.world.db, HUBS + 1)
    fleet.addHub(HUBS + 1)
    await fleet.world.pass(10_000)
    expect(fleet.unwelcomed()).toEqual([])
  })

  test('a process subscribes to results of another’s hub only as long as it sends commands there', async () => {
    const fleet = await Fleet.create(['a', 'b'])
    const foreign = fleet.hubs.find(({ hubId }) => serverOf(hubId, ['a', 'b'].map(contender)) === 'b')!.hubId
    const a = fleet.cloud('a')
    a.heard.clear()
    await fleet.command(a, foreign)
    await fleet.world.pass(1_000)
    expect(fleet.outcomes).toMatchObject([{ kind: 'executed' }])
    expect(a.heard.has(foreign)).toBe(true)
    await fleet.world.pass(70_000)
    a.heard.clear()
    await fleet.command(fleet.cloud('b'), foreign)
    await fleet.world.pass(1_000)
    expect(fleet.outcomes).toHaveLength(2)
    expect(a.heard.has(foreign)).toBe(false)
  })
})
