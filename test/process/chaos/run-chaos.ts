import { readFileSync } from 'node:fs'
import { orderStatusName } from '../../../protocol/model/order-status.ts'
import { sleep, type Runtime } from '../../../protocol/model/runtime.ts'
import { violationsOf } from '../../invariants/check.ts'
import type { Evidence } from '../../invariants/evidence.ts'
import { seededChance } from '../../simulation/chance.ts'
import { waitUntilReady } from '../../../simulator/demo/programs.ts'
import { createClient } from './client.ts'
import { createAuditor, untilQuiet } from './collect.ts'
import { createCopies } from './copies.ts'
import { createFaults, type FaultKind } from './faults.ts'
import { killAtRandom, makeWeather } from './killer.ts'
import { createPlant, type PlantOptions } from './plant.ts'
import { roomOf } from './room.ts'
import { shop } from './shopper.ts'
import { emptyAllBins, emptyAbandonedBins, operateAtRandom, resolveUnconfirmed } from './staff.ts'
import { serverErrors, Tally } from './tally.ts'

export interface ChaosOptions extends Pick<PlantOptions, 'runtime' | 'folder' | 'kind' | 'speed'> {
  seed: number
  kills: number
  shoppers: number
  /** Mean time between two kills, in milliseconds. */
  paceMs: number
  /** Kinds of faults other than kills, one per this many kills on average. */
  faults: readonly FaultKind[]
  killsPerFault: number
  /** Receives progress messages. */
  onProgress?: (text: string) => void
}

export interface ChaosOutcome {
  tally: Tally
  evidence: Evidence
  /** Violations in words. The list should be empty. */
  violations: string[]
}

/** Time for everything to end after the last kill, in milliseconds. */
const QUIET_WITHIN_MS = 100_000

/**
 * Orders run through the real programs while these are killed at random and the hub's line is bad. After the
 * kills, staff clean up, and all books are checked.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosOutcome> {
  const { runtime, seed, kills } = options
  const { clock } = runtime
  const chance = seededChance(seed)
  const tally = new Tally()
  const defects: string[] = []
  const { onProgress = () => {} } = options
  onProgress('starting the programs')
  const plant = await createPlant({
    ...options,
    onFailure(name, how, logFile) {
      const said = readFileSync(logFile, 'utf8').slice(-600)
      if (options.faults.length > 0 && WITHOUT_DATABASE.test(said))
        tally.hit('also starts without a database')
      else defects.push(`${name} ended by itself (${how}): ${said}`)
    },
  })
  const { databaseLine: line, databaseUrl } = plant
  const copies = line && createCopies({ databaseUrl, line, clock })
  try {
    const room = roomOf(plant, clock)
    const auditor = await createAuditor(plant, room)
    const requests = doorbell(runtime)
    const storm = { ...options, plant, clock, tally, nextRequest: requests.next, chance: chance.fork() }
    const faults = createFaults({ ...storm, copies, chance: chance.fork() }, options.faults)
    faults.startWithFaults()
    plant.start()

    let isOver = false
    const client = createClient({ urls: plant.cloudUrls, runtime, tally, onSend: requests.ring })
    const apiKey = plant.seed.owner.api_key
    const world = { client, room, clock, tally, hubId: plant.hubId, apiKey, isOpen: () => !isOver }
    const isUp = await waitUntilReady({
      clock,
      baseUrl: plant.cloudUrls[0]!,
      hubId: plant.hubId,
      timeoutMs: 60_000,
      isGivenUp: () => defects.length > 0,
    })
    if (!isUp) throw new Error(`the hub does not begin to take orders: ${defects.join('\n')}`)

    const products = [...new Set(plant.seed.shelves.map(({ product_id }) => product_id))]
    const lives = [
      ...Array.from({ length: options.shoppers }, (_, index) =>
        shop({ ...world, products, chance: chance.fork() }, `shopper-${seed}-${index}`),
      ),
      operateAtRandom({ ...world, chance: chance.fork() }),
      emptyAbandonedBins({ ...world, chance: chance.fork() }),
    ]
    const people = lives.map((life) => life.catch((error: unknown) => void defects.push(String(error))))
    const weather = makeWeather({ ...storm, chance: chance.fork() }, () => isOver)
    await killAtRandom({ ...storm, faults }, kills, (done) => onProgress(`${done} of ${kills} kills`))
    onProgress('everybody ends what they are at')
    isOver = true
    faults.end()
    await weather
    plant.proxy.clearFaults()
    await Promise.all(people)

    const quiet = async () => {
      const left = await untilQuiet(auditor, clock, QUIET_WITHIN_MS)
      if (left !== undefined) defects.push(`not at rest: ${left}`)
    }
    await quiet()
    if (!(await emptyAllBins(world))) defects.push('the bins cannot be emptied')
    await resolveUnconfirmed(world)
    await quiet()
    onProgress('reading the books')
    const evidence = { ...(await auditor.evidence()), lost: copies?.lost ?? new Set<string>() }
    await auditor.close()
    note(evidence, tally, plant.tap.seen())
    return { tally, evidence, violations: [...defects, ...serverErrors(tally), ...inWords(evidence)] }
  } finally {
    await plant.close()
    await copies?.close()
  }
}

const inWords = (evidence: Evidence): string[] =>
  violationsOf(evidence).map(({ invariant, text }) => `${invariant}: ${text}`)

/** Message of a cloud that starts while its database is unreachable. */
const WITHOUT_DATABASE = /DATABASE_URL: .* cannot be used: [^\n]*\n$/

/** Resolves waiting callers when it is rung, or after two seconds. */
function doorbell({ clock }: Runtime) {
  let waiting: (() => void)[] = []
  return {
    ring: (): void => {
      for (const wake of waiting.splice(0)) wake()
    },
    next: async (): Promise<void> => {
      const rung = new Promise<void>((resolve) => waiting.push(resolve))
      await Promise.race([rung, sleep(clock, 2000)])
      waiting = []
    },
  }
}

function note(evidence: Evidence, tally: Tally, commandsSeen: number): void {
  const { world, cloud, staleCommands } = evidence
  for (const { processing_status, failure_reason } of cloud.orders)
    tally.hit(`order ${[orderStatusName(processing_status), failure_reason ?? []].flat().join(' ')}`)
  for (const motion of world.motions) tally.hit(`motion ${motion.action}`)
  for (const refund of cloud.refunds) tally.hit(`refund ${refund.reason} ${refund.status}`)
  for (const payment of cloud.payments) tally.hit(`payment ${payment.method} ${payment.status}`)
  tally.hit('also commands that came to the hub', commandsSeen)
  tally.hit('also stale commands among them', staleCommands.size)
}
