import { sleep, type Clock } from '../../../protocol/model/runtime.ts'
import type { Chance } from '../../simulation/chance.ts'
import type { Faults } from './faults.ts'
import type { Plant } from './plant.ts'
import type { ProgramName } from './plant-settings.ts'
import type { Tally } from './tally.ts'

export interface KillerWorld {
  plant: Plant
  chance: Chance
  clock: Clock
  tally: Tally
  /** Resolves when the next request that may change something is sent, or after a moment. */
  nextRequest: () => Promise<void>
  /** Mean time between two kills, in milliseconds. */
  paceMs: number
  faults: Faults
  /** Average number of kills per fault. */
  killsPerFault: number
}

/**
 * Programs that are killed: one of several cloud processes, the hub, the controllers with their simulator,
 * the broker.
 */
const targets = (plant: Plant): ProgramName[] => [...plant.programs]

/**
 * Sends SIGKILL to a random program at a random time. Every other kill comes within a third of a second after
 * a request, when most can be lost. Sometimes another fault strikes instead.
 */
export async function killAtRandom(
  world: KillerWorld,
  kills: number,
  onKill: (done: number) => void,
): Promise<void> {
  const { plant, chance, clock, tally, paceMs } = world
  for (let done = 0; done < kills;) {
    await sleep(clock, chance.between(paceMs * 0.2, paceMs * 1.8))
    if (chance.happens(0.5)) {
      await world.nextRequest()
      await sleep(clock, chance.between(0, 300))
    }
    if (world.faults.canStrike && chance.happens(1 / (world.killsPerFault + 1))) {
      await world.faults.strike()
      continue
    }
    const name = chance.pick(targets(plant))
    if (!plant.kill(name)) continue
    tally.hit(`kill ${name}`)
    onKill(++done)
  }
}

/** Sometimes cuts, delays and slows down the line between hub and broker, until `isOver`. */
export async function makeWeather(
  { plant: { proxy }, chance, clock, tally }: Omit<KillerWorld, 'faults'>,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    await sleep(clock, chance.between(2000, 7000))
    if (isOver()) return
    const kind = chance.pick(['cut', 'stall', 'stall', 'delay'] as const)
    tally.hit(`line ${kind}`)
    switch (kind) {
      case 'cut':
        proxy.cut()
        break
      case 'stall':
        proxy.stall(chance.pick([['up'], ['down'], ['up', 'down']] as const), chance.between(300, 8000))
        break
      case 'delay':
        proxy.delay(chance.between(50, 500), chance.between(1000, 4000))
        break
    }
  }
}
