import type { FaultType } from '../../simulator/faults/fault-types.ts'
import { openBank } from './bank.ts'
import {
  badWeather,
  copyBooks,
  cutOff,
  databaseAway,
  databaseEndsConnections,
  databaseHangs,
  databaseLosesAnswers,
  databaseRestarts,
  failOver,
  flap,
  goAway,
  killBroker,
  moveHub,
  plantBadEntry,
  processorTrouble,
  putCloudClockRight,
  restoreBooks,
  suspend,
} from './cloud-blows.ts'
import type { CloudNode } from './cloud-node.ts'
import { healthyDatabase } from './database-weather.ts'
import type { HubNode } from './hub-node.ts'
import { fairWeather } from './network.ts'
import {
  blinkingContact,
  cloneCard,
  crossLines,
  failingCabinet,
  failingCard,
  failingProbe,
  fullDisk,
  fullDiskForGood,
  hardwareFault,
  loseStore,
  powerCut,
  putHubClockRight,
  restoreStore,
  retire,
  wrongClock,
  mishaps,
  probeThatWillFail,
} from './site-blows.ts'
import type { Site, Stage } from './stage.ts'

/** Strikes one of the hubs, one of the cloud's processes, or a shared part. */
type Blow = (stage: Stage, site: Site, cloud: CloudNode) => unknown

/** All faults, with their relative frequency. */
const blows: Record<string, { weight: number; strike: Blow }> = {
  'hardware fault': { weight: 10, strike: hardwareFault },
  'the same product failing again and again': { weight: 1, strike: failingCabinet },
  'probe fails': { weight: 1, strike: failingProbe },
  'contact blinks': { weight: 0.7, strike: blinkingContact },
  'lines crossed': { weight: 0.7, strike: crossLines },
  'bad weather': { weight: 4, strike: badWeather },
  'hub cut off': { weight: 3, strike: (stage, { hub }) => cutOff(stage, hub.name) },
  'cloud cut off': { weight: 2, strike: (stage, _, cloud) => cutOff(stage, cloud.name) },
  'hub line flaps': { weight: 2, strike: (stage, { hub }) => flap(stage, hub.name) },
  'broker killed': { weight: 2, strike: killBroker },
  'hub killed': { weight: 3, strike: (_, { hub }) => hub.kill() },
  'cloud killed': { weight: 3, strike: (_, __, cloud) => cloud.kill() },
  'hub away': { weight: 1, strike: (stage, { hub }) => goAway(stage, hub) },
  'cloud away': { weight: 1, strike: (stage, _, cloud) => goAway(stage, cloud) },
  'cloud suspended': { weight: 1, strike: (stage, _, cloud) => suspend(stage, cloud) },
  'all of the cloud suspended': {
    weight: 0.5,
    strike: (stage) => stage.clouds.forEach((one) => suspend(stage, one)),
  },
  'all of the cloud away': {
    weight: 0.5,
    strike: (stage) => stage.clouds.forEach((one) => goAway(stage, one)),
  },
  'power cut': { weight: 2, strike: powerCut },
  'wrong clock': { weight: 2, strike: ({ chance }, { hub }) => hub.shiftWall(wrongClock(chance)) },
  'hub clock put right': { weight: 1, strike: putHubClockRight },
  'cloud clock put right': { weight: 0.5, strike: putCloudClockRight },
  'full disk': { weight: 1, strike: fullDisk },
  'disk full for good': { weight: 0.3, strike: fullDiskForGood },
  'card fails': { weight: 1, strike: failingCard },
  'processor trouble': { weight: 2, strike: processorTrouble },
  'database hangs': { weight: 0.7, strike: databaseHangs },
  'database away': { weight: 0.7, strike: databaseAway },
  'database restarts': { weight: 1, strike: databaseRestarts },
  'database ends connections': { weight: 1, strike: databaseEndsConnections },
  'database loses answers': { weight: 1, strike: databaseLosesAnswers },
  'bad entry': { weight: 0.5, strike: plantBadEntry },
  'books copied': { weight: 1, strike: copyBooks },
  'books restored': { weight: 0.4, strike: restoreBooks },
  'database failed over': { weight: 0.5, strike: failOver },
  'hub in another time zone': { weight: 1, strike: moveHub },
  'store copied': { weight: 1, strike: (_, { hub }) => hub.backUp() },
  'store restored': { weight: 0.5, strike: restoreStore },
  'store lost': { weight: 0.3, strike: loseStore },
  'card cloned': { weight: 0.5, strike: cloneCard },
}

const TOTAL = Object.values(blows).reduce((sum, { weight }) => sum + weight, 0)

/** Strikes at random instants while the storm lasts. */
export function startStorm(stage: Stage, meanMs: number): void {
  const { chance, coverage } = stage
  const next = (): void => {
    stage.plan(-Math.log(1 - chance.fraction()) * meanMs, () => {
      if (!stage.isStormy()) return
      let draw = chance.fraction() * TOTAL
      const [name, blow] = Object.entries(blows).find(([, { weight }]) => (draw -= weight) < 0)!
      coverage.hit(`fault ${name}`)
      const struck = blow.strike(stage, chance.pick(stage.sites), chance.pick(stage.clouds))
      next()
      return struck
    })
  }
  next()
}

/** Faults from the start: wrong clocks, and a power cut during the first start. */
export function startWithFaults(stage: Stage): void {
  const { chance, coverage, clouds } = stage
  for (const site of stage.sites) {
    if (chance.happens(0.3)) {
      coverage.hit('fault hub clock wrong at start')
      site.hub.shiftWall(wrongClock(chance))
    }
    if (chance.happens(0.2)) probeThatWillFail(stage, site)
    if (!chance.happens(0.2)) continue
    coverage.hit('fault power cut at the first start')
    stage.plan(chance.between(0, 2000), () => powerCut(stage, site))
  }
  if (!chance.happens(0.2)) return
  coverage.hit('fault cloud clock wrong at start')
  const offsetMs = chance.pick([-600_000, 45_000, 3_600_000])
  for (const cloud of clouds) cloud.shiftWall(offsetMs)
}

/** How long a hub stays silent after the storm: longer than an order may take. */
export const ABSENT_MS = 15 * 60_000

/** Ends the storm and all its faults; one hub may stay silent for a while. */
export function calm(stage: Stage, absent: Site | undefined): void {
  const { sites, clouds, store, bank, network, plan, impostors } = stage
  network.weather = fairWeather
  network.startBroker()
  network.severed.clear()
  store.weather = healthyDatabase
  bank.weather = openBank
  for (const impostor of impostors) retire(impostor, stage)
  for (const { room, hub } of sites) {
    for (const path of ['bins', 'vending']) room.plug(path)
    room.hub.faults.clearAll()
    room.hub.power('on')
    hub.fillDisk(false)
    hub.failStorage(undefined)
  }
  for (const cloud of clouds) {
    cloud.shiftWall(0)
    // A suspended process is killed.
    if (cloud.isSuspended) cloud.kill('stands still')
  }
  const start = (node: HubNode | CloudNode): void => {
    node.heldDown = false
    node.start()
  }
  for (const { hub } of sites) if (hub !== absent?.hub) start(hub)
  clouds.forEach(start)
  if (!absent) return
  absent.hub.heldDown = true
  absent.hub.kill('stays away')
  plan(ABSENT_MS, () => start(absent.hub))
}

/** Names that a full run must have met. */
export const expectedFaults: readonly string[] = [
  ...Object.keys(blows),
  ...mishaps.map((type: FaultType) => `hardware ${type}`),
  'hub clock wrong at start',
  'cloud clock wrong at start',
  'power cut at the first start',
  'hub stays away',
  'card cloned into another room',
  'card cloned onto a bench',
  'card: read_only',
  'card: io_error',
  'card: locked',
].map((name) => `fault ${name}`)
