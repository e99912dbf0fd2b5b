import { faultKinds, faultTypes, type FaultType } from '../../simulator/faults/fault-types.ts'
import type { Chance } from './chance.ts'
import type { CloudNode } from './cloud-node.ts'
import type { Coverage } from './coverage.ts'
import type { HubNode } from './hub-node.ts'
import { fairWeather, type Network } from './network.ts'
import type { Room } from './room.ts'

export interface Stage {
  room: Room
  network: Network
  hub: HubNode
  cloud: CloudNode
  chance: Chance
  coverage: Coverage
  isStormy(): boolean
  /**
   * Which of its two memories the hub may lose: its journal, or its controllers' memory of operations. Where both are lost
   * between an act and its report, nothing is left to reconcile from.
   */
  mayLose: 'journal' | 'controller memory'
}

type Blow = (stage: Stage) => void

const TARGETS: Record<string, readonly string[]> = {
  bin: ['bin-1', 'bin-2'],
  cabinet: ['cabinet-1', 'cabinet-2'],
  fridge: ['fridge-1'],
  door: ['main', 'fridge_1_left'],
  controller: ['bins', 'vending'],
  device: ['bin-1', 'cabinet-1'],
}

/** Far enough apart for sales of one moment to fall on different days. */
const TIME_ZONES = ['America/Chicago', 'Asia/Kathmandu', 'Pacific/Kiritimati'] as const

/** Everything that goes wrong, with how often it does so relative to the rest. */
const blows: Record<string, { weight: number; strike: Blow }> = {
  'hardware fault': { weight: 10, strike: hardwareFault },
  'bad weather': { weight: 4, strike: badWeather },
  'hub cut off': { weight: 3, strike: (stage) => cutOff(stage, 'hub') },
  'cloud cut off': { weight: 2, strike: (stage) => cutOff(stage, 'cloud') },
  'broker killed': { weight: 2, strike: killBroker },
  'hub killed': { weight: 3, strike: ({ hub }) => hub.kill() },
  'cloud killed': { weight: 3, strike: ({ cloud }) => cloud.kill() },
  'hub away': { weight: 1, strike: hubAway },
  'cloud away': { weight: 1, strike: cloudAway },
  'power cut': { weight: 2, strike: powerCut },
  'wrong clock': { weight: 2, strike: ({ hub, chance }) => hub.shiftWall(wrongClock(chance)) },
  'full disk': { weight: 1, strike: fullDisk },
  'processor trouble': { weight: 2, strike: processorTrouble },
  'hub in another time zone': {
    weight: 1,
    strike: ({ cloud, chance }) => cloud.moveHub(chance.pick(TIME_ZONES)),
  },
  'store copied': { weight: 1, strike: ({ hub }) => hub.backUp() },
  'store restored': { weight: 0.5, strike: restoreStore },
  'store lost': { weight: 0.3, strike: loseStore },
}

const TOTAL = Object.values(blows).reduce((sum, { weight }) => sum + weight, 0)

/** Strikes at random instants for as long as the storm lasts. */
export function startStorm(stage: Stage, meanMs: number): void {
  const { room, chance, coverage } = stage
  const next = (): void => {
    room.plan(-Math.log(1 - chance.fraction()) * meanMs, () => {
      if (!stage.isStormy()) return
      let draw = chance.fraction() * TOTAL
      const [name, blow] = Object.entries(blows).find(([, { weight }]) => (draw -= weight) < 0)!
      coverage.hit(`fault ${name}`)
      blow.strike(stage)
      next()
    })
  }
  next()
}

function restoreStore({ hub, mayLose, coverage }: Stage): void {
  if (mayLose === 'journal' && hub.restore()) coverage.hit('fault store restored from a copy')
}

function loseStore({ hub, mayLose, coverage }: Stage): void {
  if (mayLose !== 'journal') return
  hub.loseStore()
  coverage.hit('fault store lost indeed')
}

function hardwareFault({ room, chance, coverage, mayLose }: Stage): void {
  const type = chance.pick(faultTypes)
  const losesMemory = type === 'memory_loss' || type === 'used_board'
  if (losesMemory && mayLose !== 'controller memory') return
  const kind = faultKinds[type]
  coverage.hit(`fault hardware ${type}`)
  room.hub.faults.raise({
    type,
    target: chance.pick(TARGETS[chance.pick(kind.targets)]!),
    for_ms: type === 'brown_out' || losesMemory ? chance.between(300, 3000) : chance.between(2000, 40_000),
    ...(!('instant' in kind) && !('once' in kind) && { probability: chance.pick([0.2, 0.5, 1]) }),
  })
}

function badWeather({ room, network, chance }: Stage): void {
  network.weather = {
    loss: chance.pick([0, 0.02, 0.1]),
    duplicate: chance.pick([0, 0.05, 0.2]),
    delay: chance.pick([0, 0.1, 0.3]),
    maxDelayMs: chance.pick([200, 3000, 15_000]),
  }
  room.plan(chance.between(5000, 60_000), () => (network.weather = fairWeather))
}

function cutOff({ room, network, chance }: Stage, node: 'hub' | 'cloud'): void {
  network.severe(node, true)
  room.plan(chance.between(50, chance.pick([3000, 100_000])), () => network.severe(node, false))
}

function killBroker({ room, network, chance }: Stage): void {
  network.killBroker()
  room.plan(chance.between(100, 15_000), () => network.startBroker())
}

function hubAway({ room, hub, chance }: Stage): void {
  hub.heldDown = true
  hub.kill()
  room.plan(chance.between(5000, 120_000), () => {
    hub.heldDown = false
    hub.start()
  })
}

function cloudAway({ room, cloud, chance }: Stage): void {
  cloud.heldDown = true
  cloud.kill()
  room.plan(chance.between(5000, 120_000), () => {
    cloud.heldDown = false
    cloud.start()
  })
}

/** The whole room goes dark: the board and the controllers at one instant. */
function powerCut({ room, hub, chance }: Stage): void {
  hub.heldDown = true
  hub.kill('power cut')
  room.hub.power('off')
  room.plan(chance.between(500, 20_000), () => {
    room.hub.power('on')
    hub.heldDown = false
    hub.start()
  })
}

function wrongClock(chance: Chance): number {
  const YEAR = 365 * 24 * 3600 * 1000
  return chance.pick([0, -56 * YEAR, -3_600_000, 45_000, 3_600_000, YEAR])
}

function fullDisk({ room, hub, chance }: Stage): void {
  hub.fillDisk(true)
  room.plan(chance.between(1000, 30_000), () => hub.fillDisk(false))
}

function processorTrouble({ room, cloud, chance }: Stage): void {
  cloud.weather = {
    unavailable: chance.pick([0, 0.3, 1]),
    repeatEvent: chance.pick([0, 0.3]),
    loseEvent: chance.pick([0, 0.3, 1]),
  }
  room.plan(chance.between(5000, 60_000), () => clearProcessor(cloud))
}

function clearProcessor(cloud: CloudNode): void {
  cloud.weather = { unavailable: 0, repeatEvent: 0, loseEvent: 0 }
}

/** The storm is over: everything that was taken away is given back. */
export function calm({ room, network, hub, cloud }: Stage): void {
  network.weather = fairWeather
  network.startBroker()
  network.severe('hub', false)
  network.severe('cloud', false)
  room.hub.faults.clearAll()
  room.hub.power('on')
  clearProcessor(cloud)
  hub.fillDisk(false)
  hub.heldDown = false
  cloud.heldDown = false
  hub.start()
  cloud.start()
}

/** Names that a full run must have met. */
export const expectedFaults: readonly string[] = [
  ...Object.keys(blows).map((name) => `fault ${name}`),
  ...faultTypes.map((type: FaultType) => `fault hardware ${type}`),
]
