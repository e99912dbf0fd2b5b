import { openBank } from './bank.ts'
import { enqueue } from '../../cloud/gateway/outbox.ts'
import { PLANTED } from '../invariants/ledgers.ts'
import type { CloudNode } from './cloud-node.ts'
import { healthyDatabase, type DatabaseWeather } from './database-weather.ts'
import type { HubNode } from './hub-node.ts'
import { fairWeather } from './network.ts'
import type { Site, Stage } from './stage.ts'

/** Faults of the cloud's processes, their database, the card processor and the network. */

/** Far enough apart that sales of one moment are on different days. */
const TIME_ZONES = ['America/Chicago', 'Asia/Kathmandu', 'Pacific/Kiritimati'] as const

export function badWeather({ plan, network, chance }: Stage): void {
  network.weather = {
    loss: chance.pick([0, 0.02, 0.1]),
    duplicate: chance.pick([0, 0.05, 0.2]),
    delay: chance.pick([0, 0.1, 0.3]),
    maxDelayMs: chance.pick([200, 3000, 15_000]),
  }
  plan(chance.between(5000, 60_000), () => (network.weather = fairWeather))
}

export function cutOff({ plan, network, chance }: Stage, node: string): void {
  network.severe(node, true)
  plan(chance.between(50, chance.pick([3000, 100_000])), () => network.severe(node, false))
}

/** A radio link that works for seconds at a time: a session ends while its messages are in flight. */
export function flap({ plan, network, chance }: Stage, node: string): void {
  network.weather = { ...network.weather, delay: 0.5, maxDelayMs: 4000 }
  const forMs = chance.between(15_000, 60_000)
  for (let at = 0; at < forMs; at += chance.between(1000, 6000))
    plan(at, () => network.cut((life) => life.name === node, 'flap'))
  plan(forMs, () => (network.weather = fairWeather))
}

export function killBroker({ plan, network, chance }: Stage): void {
  network.killBroker()
  plan(chance.between(100, 15_000), () => network.startBroker())
}

export function goAway({ plan, chance }: Stage, node: HubNode | CloudNode): void {
  node.heldDown = true
  node.kill()
  plan(chance.between(5000, 120_000), () => {
    node.heldDown = false
    node.start()
  })
}

/** How long a broker waits for a silent client: one and a half times its keepalive. */
const KEEPALIVE_MS = 45_000

/** Suspends a process for seconds or minutes; it then continues as if nothing had happened. */
export function suspend({ plan, network, chance }: Stage, cloud: CloudNode): void {
  const forMs = chance.between(2000, chance.pick([20_000, 240_000]))
  const { life } = cloud
  cloud.suspend(forMs)
  if (forMs > KEEPALIVE_MS) plan(KEEPALIVE_MS, () => network.cut((one) => one === life, 'keepalive'))
}

export function putCloudClockRight({ clouds }: Stage): void {
  for (const cloud of clouds) cloud.shiftWall(0)
}

export function processorTrouble({ plan, bank, chance }: Stage): void {
  bank.weather = {
    unavailable: chance.pick([0, 0.3, 1]),
    repeatEvent: chance.pick([0, 0.3]),
    loseEvent: chance.pick([0, 0.3, 1]),
  }
  plan(chance.between(5000, 60_000), () => (bank.weather = openBank))
}

function ailing({ plan, store }: Stage, weather: Partial<DatabaseWeather>, forMs: number): void {
  store.weather = { ...healthyDatabase, ...weather }
  plan(forMs, () => (store.weather = healthyDatabase))
}

export const databaseHangs = (stage: Stage): void =>
  ailing(stage, { hangs: true }, stage.chance.between(500, 40_000))

export const databaseAway = (stage: Stage): void =>
  ailing(stage, { refuses: true }, stage.chance.between(500, 40_000))

/** The server closes all connections, and is unavailable for a while. */
export async function databaseRestarts(stage: Stage): Promise<void> {
  ailing(stage, { refuses: true }, stage.chance.between(200, 5000))
  await stage.store.endSessions()
}

export const databaseEndsConnections = (stage: Stage): void =>
  ailing(stage, { endsConnections: stage.chance.pick([0.01, 0.1]) }, stage.chance.between(2000, 30_000))

export const databaseLosesAnswers = (stage: Stage): void =>
  ailing(stage, { losesCommitAnswers: stage.chance.pick([0.05, 0.3]) }, stage.chance.between(2000, 30_000))

/** An operator changes the time zone of the hub. */
export function moveHub({ store, chance }: Stage, { hubId }: Site): Promise<unknown> {
  const timezone = chance.pick(TIME_ZONES)
  return store.reader.kysely.updateTable('hubs').set({ timezone }).where('id', '=', hubId).execute()
}

export async function copyBooks({ store, mayLose }: Stage): Promise<void> {
  if (mayLose === 'books') await store.copy()
}

/** Stops the cloud, and restarts it with a copy of its database that was made a while ago. */
export async function restoreBooks({ store, clouds, mayLose, coverage }: Stage): Promise<void> {
  if (mayLose !== 'books' || !store.hasCopy) return
  for (const cloud of clouds) cloud.kill('restored')
  await store.putBack()
  coverage.hit('fault books restored indeed')
}

/** A replica without the last commits takes over. */
export async function failOver(stage: Stage): Promise<void> {
  const { store, mayLose, coverage, chance, plan } = stage
  if (mayLose !== 'books') return
  await store.copy()
  plan(chance.between(50, 4000), async () => {
    await store.putBack()
    coverage.hit('fault database failed over indeed')
  })
}

/**
 * A newer version of the service, which was rolled back, has left an entry that the present hubs do not
 * understand.
 */
export async function plantBadEntry({ store }: Stage, { hubId }: Site): Promise<void> {
  await store.reader.transact((tx) => enqueue(tx, hubId, { kind: PLANTED } as never))
}
