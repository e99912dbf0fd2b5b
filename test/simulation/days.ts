import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { alarmWork } from '../../cloud/events/alarms/alarms.ts'
import { hubWork } from '../../cloud/operations/hubs/hub-events.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { retentionWork } from '../../cloud/retention.ts'
import { defaultHubSettings } from '../../protocol/settings/hub-limits.ts'
import { testMedia } from '../cloud/support/media.ts'
import { violationsOf } from '../invariants/check.ts'
import { calm, startStorm } from './blows.ts'
import { CUSTOMERS, HUBS } from './cloud-books.ts'
import { seededChance, type Chance } from './chance.ts'
import { collect } from './collect.ts'
import { buyOnce } from './customer.ts'
import type { CustomerWorld } from './customer-calls.ts'
import { DayTable } from './day-table.ts'
import type { Fleet } from './fleet.ts'
import type { Limits } from './limits.ts'
import type { Site } from './stage.ts'
import { putInOrder, refill, type TechnicianWorld } from './technician.ts'
import { World } from './world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** A file system in memory for the journals: the simulation does not wait for a disk. */
const MEMORY = '/dev/shm'
const DAY = 24 * HOUR

export interface DaysOptions {
  days: number
  seed: number
  hubs: number
  /** Orders of a hub on an ordinary day. */
  ordersPerDay: number
  print: (line: string) => void
}

/** Customers of each hour, relative to each other. */
const HOURS = [0, 0, 0, 0, 0, 0, 1, 3, 3, 2, 2, 4, 6, 4, 2, 2, 3, 5, 5, 3, 2, 1, 1, 0] as const
const HOURS_SUM = HOURS.reduce<number>((sum, one) => sum + one, 0)
/** Time between two visits of a technician to one hub. */
const VISIT_MS = 3 * DAY
/** How many times slower boards and programs repeat themselves without news. */
const PACE = 180
/** Mean time between two faults in the whole fleet. */
const FAULT_MS = 2 * HOUR

/**
 * The limits of production, except that everything which repeats without news does so rarely: pings, heartbeats and polls
 * would be all of the cost. Orders have the times of production.
 */
function quietLimits(): Limits {
  const { core, sync, outbox, links, storage } = defaultHubSettings
  const { rules, gateway } = defaultLimits
  return {
    rules: {
      ...rules,
      hubCertificateMs: 9 * DAY,
      onlineWithinMs: 40 * MINUTE,
      hubSilentAlarmMs: 45 * MINUTE,
      listeningGapMs: 30 * MINUTE,
      workPollMs: 2 * MINUTE,
      rolloutStepMs: MINUTE,
      staleSalesMs: HOUR,
    },
    image: undefined,
    gateway: { ...gateway, beatMs: 2 * MINUTE, pollMs: 5 * MINUTE, sweepMs: HOUR, leaseMs: HOUR },
    hub: {
      storage,
      links: { ...links, pingMs: 6 * MINUTE, silentMs: 18 * MINUTE },
      core: {
        ...core,
        housekeepingMs: 30 * MINUTE,
        fridgeUnreadableMs: 2 * HOUR,
        fridgeProofMs: 30 * MINUTE,
        warmAlarmMs: 2 * HOUR,
        healthShutoffMs: 4 * HOUR,
      },
      outbox,
      sync: { ...sync, heartbeatMs: 15 * MINUTE, stalledCheckMs: 10 * MINUTE, quietMs: 30 * MINUTE },
    },
  }
}

/** Plays days of a fleet, prints what happened on each, and returns the violated rules. */
export async function runDays(options: DaysOptions): Promise<string[]> {
  const journals = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'larder-days-'))
  const moreWork = (context: CloudContext) => ({
    ...hubWork(context),
    ...alarmWork(context),
    ...retentionWork(context, testMedia(context)),
  })
  const world = await World.create(options.seed, {
    hubs: options.hubs,
    hasFleet: true,
    limits: quietLimits(),
    moreWork,
    journals,
    renewAgainMs: 2 * HOUR,
    watchMs: HOUR,
    rarity: 100,
    pace: PACE,
  })
  try {
    return await new Days(options, world).play()
  } finally {
    await world.close()
    rmSync(journals, { recursive: true })
  }
}

const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

class Days {
  readonly #options: DaysOptions
  readonly #world: World
  readonly #fleet: Fleet
  readonly #chance: Chance
  readonly #people: CustomerWorld
  readonly #idle: number[]
  readonly #report: (error: unknown) => void
  #isOpen = true

  constructor(options: DaysOptions, world: World) {
    this.#options = options
    this.#world = world
    this.#fleet = world.fleet!
    this.#chance = seededChance(options.seed ^ 0xda75)
    const { scheduler, sites, coverage, sleep, anyCloud } = world
    const outside = { name: 'outside', alive: true, onCrash() {} }
    this.#report = (error) => scheduler.report(error, outside)
    const isOpen = (): boolean => this.#isOpen
    const parts = { sites, coverage, sleep, report: this.#report, isOpen, chance: this.#chance }
    this.#people = { ...parts, cloud: anyCloud }
    const users = (CUSTOMERS * options.hubs) / HUBS.length
    this.#idle = Array.from({ length: users }, (_, index) => index + 1)
  }

  async play(): Promise<string[]> {
    const { days, print } = this.#options
    const { scheduler } = this.#world
    const table = new DayTable(this.#world)
    this.#world.start()
    startStorm(this.#world, (FAULT_MS * 20) / this.#options.hubs)
    this.#plan()
    print(table.head)
    for (let day = 1; day <= days; day += 1) {
      await scheduler.run(day * DAY)
      const journals = this.#world.sites.map(({ hub }) => bytesOf(hub.path!) + bytesOf(`${hub.path!}-wal`))
      print(await table.row(day, journals))
      if (scheduler.failure !== undefined) break
    }
    await this.#end()
    const problems = [...(await this.#violations())]
    for (const line of await table.summary()) print(line)
    return problems
  }

  /** The calendar: sales of each hour, visits, releases, a theft, and two cards that age. */
  #plan(): void {
    const { days } = this.#options
    const { sites, plan } = this.#world
    for (let hour = 0; hour < days * 24; hour += 1) for (const site of sites) this.#planSales(site, hour)
    for (const [index, site] of sites.entries())
      for (let at = (VISIT_MS * (index + 1)) / sites.length; at < days * DAY; at += VISIT_MS)
        plan(at, () => void this.#visit(site).catch(this.#report))
    const on = (part: number, work: () => Promise<unknown>): void =>
      plan(part * days * DAY, () => work().catch(this.#report))
    const someone = (): Site => this.#chance.pick(sites)
    const waves = ['1', '10%', '100%']
    on(0.07, () => this.#fleet.rollOut('healthy', waves))
    on(0.33, () =>
      this.#fleet.rollOut(this.#chance.pick(['crashes', 'never becomes ready', 'loses a controller']), waves),
    )
    on(0.5, () => this.#fleet.rollOut('healthy', waves))
    on(0.4, async () => someone().hub.failStorage('read_only'))
    on(0.6, async () => someone().hub.fillDisk(true))
    on(0.7, async () => {
      const site = someone()
      await this.#fleet.revoke(site)
      // A technician comes in the morning, and types a code.
      plan(Math.min(DAY / 2, 0.1 * days * DAY), () => void this.#replace(site).catch(this.#report))
    })
  }

  async #replace(site: Site): Promise<void> {
    await this.#fleet.replace(site, { losesJournal: this.#world.mayLose === 'journal' })
    await this.#visit(site)
  }

  #planSales(site: Site, hour: number): void {
    const { plan } = this.#world
    const expected = (this.#options.ordersPerDay * HOURS[hour % 24]!) / HOURS_SUM
    const orders = Math.floor(expected) + (this.#chance.happens(expected % 1) ? 1 : 0)
    for (let order = 0; order < orders; order += 1)
      plan(hour * HOUR + this.#chance.between(0, HOUR), () => void this.#sell(site).catch(this.#report))
  }

  async #sell(site: Site): Promise<string> {
    const user = this.#idle.splice(this.#chance.between(0, this.#idle.length - 1), 1)[0]
    if (user === undefined || !this.#isOpen) return 'nobody'
    const ended = await buyOnce({ ...this.#people, sites: [site] }, user)
    this.#idle.push(user)
    this.#world.coverage.hit(`customer ${ended}`)
    return ended
  }

  #technician(site: Site): TechnicianWorld {
    const { scheduler, coverage, sleep, anyCloud, network } = this.#world
    return {
      ...site,
      scheduler,
      coverage,
      sleep,
      services: anyCloud,
      isStormy: () => this.#isOpen,
      isLineSlow: () => network.weather.delay > 0,
      chance: this.#chance,
    }
  }

  /** Empties the bins, counts doubtful rows, fills the shelves, and mends the card. */
  async #visit(site: Site): Promise<void> {
    const { hub } = site
    hub.failStorage(undefined)
    hub.fillDisk(false)
    const technician = this.#technician(site)
    await putInOrder(technician)
    await refill(technician)
    this.#world.coverage.hit('technician visits')
  }

  async #end(): Promise<void> {
    const { scheduler, sites } = this.#world
    this.#isOpen = false
    this.#world.endStorm(undefined)
    calm(this.#world, undefined)
    this.#fleet.mend().catch(this.#report)
    await this.#world.runUntilQuiet(3 * HOUR)
    let isTidy = false
    Promise.all(sites.map((site) => this.#visit(site))).then(() => (isTidy = true), this.#report)
    await scheduler.run(scheduler.time + 30 * MINUTE, () => isTidy)
    await this.#world.runUntilQuiet(HOUR)
    await scheduler.run(scheduler.time + HOUR, () => this.#fleet.isAtRest())
    await this.#sellEverywhere()
    await this.#world.runUntilQuiet(2 * HOUR)
  }

  /** Every hub must sell at the end. */
  async #sellEverywhere(): Promise<void> {
    const { scheduler, sites, sleep } = this.#world
    const waiting = new Set(sites)
    this.#isOpen = true
    const attempts = sites.map(async (site) => {
      for (let attempt = 0; attempt < 20 && waiting.has(site); attempt += 1)
        if ((await this.#sell(site)) === 'ended 60') waiting.delete(site)
        else await sleep(5 * MINUTE)
    })
    let isOver = false
    Promise.all(attempts).then(() => (isOver = true), this.#report)
    await scheduler.run(scheduler.time + 12 * HOUR, () => isOver)
    this.#isOpen = false
    for (const { hubId } of waiting) this.#fleet.problems.push(`hub ${hubId} does not sell at the end`)
  }

  async #violations(): Promise<string[]> {
    const { failure } = this.#world.scheduler
    if (failure !== undefined)
      return [failure instanceof Error ? (failure.stack ?? failure.message) : 'a defect']
    const found = [...this.#fleet.judgeAll()]
    for (const site of this.#world.sites)
      for (const { invariant, text } of violationsOf(await collect(site, this.#world)))
        found.push(`hub ${site.hubId}: ${invariant}: ${text}`)
    return found
  }
}
