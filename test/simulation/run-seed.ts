import type { Evidence, Violation } from '../invariants/evidence.ts'
import { violationsOf } from '../invariants/check.ts'
import { startWithFaults, calm, startStorm } from './blows.ts'
import { CUSTOMERS } from './cloud-books.ts'
import { seededChance } from './chance.ts'
import type { Coverage } from './coverage.ts'
import { liveCustomer } from './customer.ts'
import { firmwareOf } from '../world/firmware.ts'
import { collect } from './collect.ts'
import { liveUnattended } from './fleet-blows.ts'
import { liveOwner } from './owner.ts'
import { operateAtRandom, putInOrder } from './technician.ts'
import { World } from './world.ts'

const MINUTE = 60_000

export interface SeedOutcome {
  seed: number
  violations: Violation[]
  /** A defect that showed before the end: the thrown error. */
  failure: unknown
  coverage: Coverage
  /** Evidence of each hub. */
  evidence: Evidence[]
}

export interface SeedOptions {
  postgresUrl?: string | undefined
  /** Whether the hubs are enrolled, renewed, revoked and updated. Default: the seed decides. */
  hasFleet?: boolean
}

/** The seeds before it are those of the mutants (`mutant-list.ts`), which keep their events. */
const FIRST_FLEET = 501
const hasFleetBy = (seed: number): boolean => seed >= FIRST_FLEET && seededChance(seed ^ 0xf1ee7).happens(0.1)

/**
 * Runs one seed under one scheduler: two hubs of two owners, their rooms, two processes of the cloud on one
 * database, the card processor, the network and the clocks. After some minutes of sales during a storm come
 * calm and a clean-up. Then all books are checked.
 */
export async function runSeed(
  seed: number,
  { postgresUrl, hasFleet = postgresUrl === undefined && hasFleetBy(seed) }: SeedOptions = {},
): Promise<SeedOutcome> {
  const world = await World.create(seed, { postgresUrl, hasFleet })
  try {
    return await play(seed, world)
  } finally {
    await world.close()
  }
}

async function play(seed: number, world: World): Promise<SeedOutcome> {
  const { scheduler, chance, coverage, sites } = world
  const stormMs = chance.between(3, 12) * MINUTE
  const isOpen = (): boolean => world.isStormy()
  const report = (error: unknown): void => scheduler.report(error, DEFECT)

  startWithFaults(world)
  world.start()
  startStorm(world, chance.pick([4000, 10_000, 30_000]))
  const people = { sites, coverage, sleep: world.sleep, cloud: world.anyCloud, report, isOpen }
  const technicians = sites.map((site) => ({
    ...site,
    scheduler,
    coverage,
    sleep: world.sleep,
    services: world.anyCloud,
    isStormy: isOpen,
    isLineSlow: () => world.network.weather.delay > 0,
    chance: chance.fork(),
  }))
  const visitors = [
    ...Array.from({ length: CUSTOMERS }, (_, index) =>
      liveCustomer({ ...people, chance: chance.fork() }, index + 1),
    ),
    ...technicians.map(operateAtRandom),
    liveOwner({ ...people, chance: seededChance(seed ^ 0x0e7a1d) }),
    ...(world.fleet ? [liveUnattended(world, world.fleet, seededChance(seed ^ 0x11fe))] : []),
  ]
  for (const visitor of visitors) visitor.catch(report)

  await scheduler.run(stormMs)
  const absent = chance.happens(0.3) ? chance.pick(sites) : undefined
  if (absent) coverage.hit('fault hub stays away')
  world.endStorm(absent)
  calm(world, absent)
  world.fleet?.mend().catch(report)
  // All pending work ends, by itself or by its deadline.
  await world.runUntilQuiet(40 * MINUTE)
  let isTidy = false
  Promise.all(technicians.map(putInOrder)).then(() => (isTidy = true), report)
  await scheduler.run(scheduler.time + 8 * MINUTE, () => isTidy)
  await world.runUntilQuiet(10 * MINUTE)
  await scheduler.run(scheduler.time + 30 * MINUTE, () => world.fleet?.isAtRest() ?? true)

  const wrong = world.fleet?.judgeAll() ?? []
  if (wrong.length > 0) scheduler.failure ??= new Error(wrong.join('; '))
  const { failure } = scheduler
  if (failure !== undefined) return { seed, violations: [], failure, coverage, evidence: [] }
  const evidence = await Promise.all(sites.map((site) => collect(site, world)))
  for (const one of evidence) note(one, coverage)
  if (world.limits.image)
    for (const { room } of sites)
      for (const controller of room.hub.controllers.values())
        coverage.hit(`firmware ${firmwareOf(controller)}`)
  return { seed, violations: evidence.flatMap(violationsOf), failure, coverage, evidence }
}

const DEFECT = { name: 'outside', alive: true, onCrash() {} }

function note(evidence: Evidence, coverage: Coverage): void {
  for (const order of evidence.cloud.orders) coverage.hit(`order ended ${order.processing_status}`)
  for (const motion of evidence.world.motions) coverage.hit(`motion ${motion.action}`)
  for (const refund of evidence.cloud.refunds) coverage.hit(`refund ${refund.reason} ${refund.status}`)
  for (const { deal_id, status } of evidence.cloud.redemptions)
    coverage.hit(`redemption of deal ${deal_id} ${status}`)
  coverage.hit('stale commands seen', evidence.staleCommands.size)
}
