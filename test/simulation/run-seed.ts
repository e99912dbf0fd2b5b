import type { Evidence, Violation } from '../invariants/evidence.ts'
import { violationsOf } from '../invariants/check.ts'
import { collectCloud } from '../invariants/collect-cloud.ts'
import { collectHub } from '../invariants/collect-hub.ts'
import { seededChance } from './chance.ts'
import { CUSTOMERS } from './cloud-books.ts'
import { CloudNode } from './cloud-node.ts'
import { Coverage } from './coverage.ts'
import { CrashPoints } from './crash-points.ts'
import { liveCustomer } from './customer.ts'
import { calm, startStorm } from './fault-plan.ts'
import { stockedFacings } from './hardware.ts'
import { HubNode } from './hub-node.ts'
import { Network } from './network.ts'
import { Room } from './room.ts'
import { Scheduler } from './scheduler.ts'
import { meddle, putInOrder } from './technician.ts'

const MINUTE = 60_000
const HUB = 1

export interface SeedOutcome {
  seed: number
  violations: Violation[]
  /** A defect that showed before the end: what was thrown. */
  failure: unknown
  coverage: Coverage
  evidence: Evidence | undefined
}

/**
 * One seed: a hub, its room, the cloud and its processor, the network and the clocks, all under one scheduler. A storm of
 * some minutes, in which people buy; then calm; then somebody who puts things in order; then everybody's books are read.
 */
export async function runSeed(seed: number): Promise<SeedOutcome> {
  const chance = seededChance(seed)
  const coverage = new Coverage()
  const scheduler = new Scheduler()
  const network = new Network(scheduler, chance.fork())
  const room = new Room(scheduler, chance.fork())
  const crashes = (meanPassings: number) => new CrashPoints(chance.fork(), coverage, meanPassings)
  const hubCrashes = crashes(chance.pick([40, 150, 600]))
  const cloudCrashes = crashes(chance.pick([60, 200, 800]))
  const hub = new HubNode({
    scheduler,
    network,
    room,
    chance: chance.fork(),
    coverage,
    crashPoints: hubCrashes,
  })
  const cloud = await CloudNode.create({
    scheduler,
    network,
    chance: chance.fork(),
    coverage,
    crashPoints: cloudCrashes,
  })

  const stormMs = chance.between(3, 12) * MINUTE
  const mayLose = chance.pick(['journal', 'controller memory'] as const)
  let stormy = true
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => room.plan(ms, resolve))
  const stage = {
    room,
    network,
    hub,
    cloud,
    chance: chance.fork(),
    coverage,
    isStormy: () => stormy,
    mayLose,
  }
  const people = {
    room,
    coverage,
    sleep,
    cloud: () => cloud.services,
    report: (error: unknown) => scheduler.report(error, DEFECT),
    isOpen: () => stormy,
  }

  cloud.start()
  cloud.startProcessor()
  hub.start()
  startStorm(stage, chance.pick([8000, 20_000, 60_000]))
  const visitors = Array.from({ length: CUSTOMERS }, (_, index) =>
    liveCustomer({ ...people, chance: chance.fork() }, index + 1),
  )
  const technicianWorld = { ...stage, scheduler, sleep, chance: chance.fork() }
  visitors.push(meddle(technicianWorld))
  for (const visitor of visitors) visitor.catch((error: unknown) => scheduler.report(error, DEFECT))

  await scheduler.run(stormMs)
  stormy = false
  hubCrashes.armed = false
  cloudCrashes.armed = false
  calm(stage)
  // Whatever is under way ends, by itself or by its deadline.
  await runUntilQuiet(scheduler, { hub, cloud }, 40 * MINUTE)
  let isTidy = false
  putInOrder(technicianWorld).then(
    () => (isTidy = true),
    (error: unknown) => scheduler.report(error, DEFECT),
  )
  await scheduler.run(scheduler.time + 8 * MINUTE, () => isTidy)
  await runUntilQuiet(scheduler, { hub, cloud }, 10 * MINUTE)

  if (scheduler.failure !== undefined)
    return { seed, violations: [], failure: scheduler.failure, coverage, evidence: undefined }
  const evidence = await collect({ room, hub, cloud })
  note(evidence, coverage)
  return { seed, violations: violationsOf(evidence), failure: undefined, coverage, evidence }
}

/** Runs until no order is active and no entry waits, at the most for `atMostMs`; the invariants say what is left then. */
async function runUntilQuiet(
  scheduler: Scheduler,
  { hub, cloud }: { hub: HubNode; cloud: CloudNode },
  atMostMs: number,
): Promise<void> {
  const end = scheduler.time + atMostMs
  do await scheduler.run(scheduler.time + 20_000)
  while (scheduler.time < end && scheduler.failure === undefined && !(hub.isQuiet() && cloud.isQuiet()))
}

const DEFECT = { name: 'outside', alive: true, onCrash() {} }

async function collect({
  room,
  hub,
  cloud,
}: {
  room: Room
  hub: HubNode
  cloud: CloudNode
}): Promise<Evidence> {
  hub.noteCommands()
  const state = room.hub.state()
  const motions = room.hub.actuations()
  return {
    world: {
      motions,
      shelves: stockedFacings.map(({ cabinet, shelf, row, units }) => ({
        location: `${cabinet}-${shelf}-${row}`,
        initial: units,
        restocked: 0,
        now: state.rows.find((one) => one.cabinet === cabinet && one.shelf === shelf && one.row === row)!
          .units,
      })),
      moving: state.bins
        .filter(({ door, lift }) => door === 'moving' || lift === 'moving')
        .map(({ bin }) => bin),
      unlocked: state.doors.filter(({ locked }) => !locked).map(({ door }) => door),
      refOfOperation: room.refOfOperation,
      doubleDropsRaised: true,
      unjournaled: room.unjournaled,
    },
    hub: collectHub(hub.journal),
    cloud: await collectCloud(cloud.reader().kysely, HUB, cloud.processorDb.kysely),
    staleCommands: hub.line.staleOnly(),
    alarmsSent: hub.line.entries.alarms(),
    commandOfOperation: hub.commandOfOperation,
  }
}

function note(evidence: Evidence, coverage: Coverage): void {
  for (const order of evidence.cloud.orders) coverage.hit(`order ended ${order.processing_status}`)
  for (const motion of evidence.world.motions) coverage.hit(`motion ${motion.action}`)
  for (const refund of evidence.cloud.refunds) coverage.hit(`refund ${refund.reason} ${refund.status}`)
  for (const { deal_id, status } of evidence.cloud.redemptions)
    coverage.hit(`redemption of deal ${deal_id} ${status}`)
  coverage.hit('stale commands seen', evidence.staleCommands.size)
}
