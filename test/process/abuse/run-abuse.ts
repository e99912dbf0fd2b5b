import { readFileSync, statSync } from 'node:fs'
import { sql } from 'kysely'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { sleep, type Runtime } from '../../../protocol/model/runtime.ts'
import { unitOfRef } from '../../../edge/core/operations/intend.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { waitUntilReady } from '../../../simulator/demo/programs.ts'
import { violationsOf } from '../../invariants/check.ts'
import type { Evidence } from '../../invariants/evidence.ts'
import { operationOf, unitsFallen } from '../../invariants/motion.ts'
import { seededChance } from '../../simulation/chance.ts'
import { createClient } from '../chaos/client.ts'
import { createAuditor, untilQuiet } from '../chaos/collect.ts'
import { createPlant, type Plant } from '../chaos/plant.ts'
import { roomOf } from '../chaos/room.ts'
import { emptyAllBins, emptyAbandonedBins } from '../chaos/staff.ts'
import { serverErrors, Tally } from '../chaos/tally.ts'
import { createAsk, type AbuseWorld } from './abuser.ts'
import { abuseAsCustomer } from './customer.ts'
import { abuseAsGuest } from './guest.ts'
import { buyOne, sample, type Honest, type Sample, type Visit } from './honest.ts'
import { abuseAsThief } from './thief.ts'

export const abusers = {
  nobody: { text: 'only honest customers, for comparison', act: async () => {} },
  guest: { text: 'a guest without money who reserves all stock', act: abuseAsGuest },
  customer: { text: 'a customer who wants free goods or money', act: abuseAsCustomer },
  thief: {
    text: "a thief of the hub's card, with its MQTT password",
    act: (world: AbuseWorld, minutes: number) =>
      abuseAsThief(world, { roundMs: Math.min(120_000, minutes * 30_000) }),
  },
} as const
export type Abuser = keyof typeof abusers

export interface AbuseOptions {
  runtime: Runtime
  folder: string
  who: Abuser
  seed: number
  minutes: number
  /** Time between two honest customers, in milliseconds. */
  paceMs: number
  onProgress?: (text: string) => void
}

export interface AbuseOutcome {
  who: Abuser
  tally: Tally
  honest: Tally
  visits: readonly Visit[]
  samples: readonly Sample[]
  /** Number of samples without an answer. */
  unanswered: number
  /** Growth of the cloud's tables and of the hub's journal, in rows; unchanged tables are left out. */
  rows: readonly { table: string; grown: number }[]
  /** Growth of the files, in bytes. */
  bytes: { cloud: number; journal: number; logs: number }
  /** Cents of units that dropped into a bin for an order that was refunded or never paid. */
  lost: number
  /**
   * Invariants that a hub's false reports break in the books: no other part can know the events in its room.
   */
  lies: string[]
  violations: string[]
}

/** Delays of minutes in a shop are seconds here; the limits are the defaults. */
const settings = {
  GUESTS_PER_MINUTE: '20',
  EXTERNAL_CLAIM_MS: '20000',
  PAYMENT_HOLD_MS: '30000',
  IDLE_ORDER_MS: '60000',
  PAYMENT_ABANDON_MS: '10000',
}

/**
 * Runs one abuser and honest customers against the real programs, waits until everything has ended, and reads
 * the books.
 */
export async function runAbuse(options: AbuseOptions): Promise<AbuseOutcome> {
  const { runtime, folder, who, seed, minutes, paceMs, onProgress = () => {} } = options
  const { clock } = runtime
  const chance = seededChance(seed)
  const tally = new Tally()
  const honestTally = new Tally()
  const defects: string[] = []
  const plant = await createPlant({
    runtime,
    folder,
    kind: { type: 'bare' },
    speed: 12,
    settings: { cloud: settings },
    onFailure(name, how, logFile) {
      defects.push(`${name} ended by itself (${how}): ${readFileSync(logFile, 'utf8').slice(-600)}`)
    },
  })
  try {
    const room = roomOf(plant, clock)
    const auditor = await createAuditor(plant, room)
    plant.start()
    const url = plant.cloudUrls[0]!
    const isUp = await waitUntilReady({
      clock,
      baseUrl: url,
      hubId: plant.hubId,
      timeoutMs: 60_000,
      isGivenUp: () => defects.length > 0,
    })
    if (!isUp) throw new Error(`the hub does not begin to take orders: ${defects.join('\n')}`)
    const rowsBefore = await rowsOf(plant)
    const bytesBefore = bytesOf(plant)
    const end = clock.monotonic() + minutes * 60_000
    const isOpen = (): boolean => clock.monotonic() < end
    const products = [...new Set(plant.seed.shelves.map(({ product_id }) => product_id))]
    const client = createClient({ urls: [url], runtime, tally: honestTally })
    const shared = { plant, runtime, products, isOpen }
    const honest: Honest = { ...shared, client, room, chance: chance.fork(), tally: honestTally }
    const staff = { client, room, clock, hubId: plant.hubId, apiKey: plant.seed.owner.api_key, isOpen }
    const visits: Visit[] = []
    const samples: Sample[] = []
    let unanswered = 0

    async function shopAgainAndAgain(): Promise<void> {
      for (let n = 0; isOpen(); n++) {
        visits.push(await buyOne(honest, `honest-${seed}-${n}`))
        onProgress(
          `${visits.length} honest visits, ${Math.ceil((end - clock.monotonic()) / 60_000)} minutes left`,
        )
        await sleep(clock, paceMs)
      }
    }
    async function pollRepeatedly(): Promise<void> {
      for (; isOpen(); await sleep(clock, 2000)) {
        const seen = await sample(honest)
        if (seen) samples.push(seen)
        else unanswered++
      }
    }
    /** A remote technician who opens bins, sells nothing, and closes them. */
    async function openBins(): Promise<void> {
      const mine = chance.fork()
      for (; isOpen(); await sleep(clock, mine.between(10_000, 30_000))) {
        const bin = mine.between(1, 4)
        const path = `/api/v1/owners/controls/open_bin?bin=${bin}&hub=${plant.hubId}&confirm=false`
        await client.once({ name: 'technician opens', method: 'POST', path, apiKey: staff.apiKey })
        await sleep(clock, 3000)
        const close = `/api/v1/owners/controls/close_bin?bin=${bin}&hub=${plant.hubId}`
        await client.once({ name: 'technician closes', method: 'POST', path: close, apiKey: staff.apiKey })
      }
    }
    const abuse = {
      ...shared,
      chance: chance.fork(),
      tally,
      ask: createAsk(url, runtime, chance.fork(), tally),
    }
    await Promise.all([
      shopAgainAndAgain(),
      pollRepeatedly(),
      openBins(),
      emptyAbandonedBins({ ...staff, tally, chance: chance.fork() }),
      abusers[who].act(abuse, minutes),
    ])
    onProgress('everybody ends what they are at')
    plant.start()
    await sleep(clock, Number(settings.PAYMENT_ABANDON_MS) + 5000)
    const left = await untilQuiet(auditor, clock, QUIET_WITHIN_MS)
    if (left !== undefined) defects.push(`not at rest: ${left}`)
    if (!(await emptyAllBins(staff))) defects.push('the bins cannot be emptied')
    // The lift of a closed bin goes down without a command.
    await sleep(clock, 5000)
    const evidence = await auditor.evidence()
    await auditor.close()
    const bytes = bytesOf(plant)
    const broken = violationsOf(evidence).map(({ invariant, text }) => `${invariant}: ${text}`)
    return {
      who,
      tally,
      honest: honestTally,
      visits,
      samples,
      unanswered,
      rows: grown(rowsBefore, await rowsOf(plant)),
      bytes: {
        cloud: bytes.cloud - bytesBefore.cloud,
        journal: bytes.journal - bytesBefore.journal,
        logs: bytes.logs - bytesBefore.logs,
      },
      lost: lostOf(evidence),
      lies: who === 'thief' ? broken : [],
      violations: [
        ...defects,
        ...[tally, honestTally].flatMap(serverErrors),
        ...(who === 'thief' ? [] : broken),
      ],
    }
  } finally {
    await plant.close()
  }
}

const QUIET_WITHIN_MS = 120_000

/** Value of the units that dropped, by the physical world's own log, without a payment that was kept. */
function lostOf({ world, cloud }: Evidence): number {
  const fallen = new Map<string, number>()
  for (const motion of world.motions) {
    const unit = unitOfRef(world.refOfOperation.get(operationOf(motion) ?? '') ?? '')
    if (unit === undefined) continue
    const line = `${unit.order_id}.${unit.line_id}`
    fallen.set(line, (fallen.get(line) ?? 0) + unitsFallen(motion))
  }
  const sum = (rows: readonly { amount: number }[]): number =>
    rows.reduce((all, { amount }) => all + amount, 0)
  return cloud.orders.reduce((lost, order) => {
    const items = cloud.items.filter(({ order_id }) => order_id === order.id)
    const worth = items.reduce(
      (all, { id, qty, net, tax }) =>
        all +
        Math.floor((((net ?? 0) + (tax ?? 0)) * Math.min(fallen.get(`${order.uuid}.${id}`) ?? 0, qty)) / qty),
      0,
    )
    const paid = cloud.payments.filter(
      ({ order_id, status }) => order_id === order.id && status === 'completed',
    )
    const back = cloud.refunds.filter(
      ({ order_id, status, reason }) =>
        order_id === order.id && status === 'succeeded' && reason !== 'dispute',
    )
    return lost + Math.max(0, worth - (sum(paid) - sum(back)))
  }, 0)
}

async function rowsOf(plant: Plant): Promise<Map<string, number>> {
  const db = openDatabase({ url: plant.databaseUrl })
  try {
    const { rows } = await sql<{ name: string }>`select name from sqlite_master where type = 'table'`.execute(
      db.kysely,
    )
    const counts = new Map<string, number>()
    for (const { name } of rows) {
      const { rows: found } = await sql<{ n: number }>`select count(*) as n from ${sql.table(name)}`.execute(
        db.kysely,
      )
      counts.set(name, found[0]!.n)
    }
    const journal = new Sqlite(plant.places.journal, { readonly: true })
    const tables = journal
      .prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table'")
      .pluck()
      .all()
    for (const name of tables)
      counts.set(`hub: ${name}`, journal.prepare<[], number>(`SELECT count(*) FROM "${name}"`).pluck().get()!)
    journal.close()
    return counts
  } finally {
    await db.close()
  }
}

const grown = (
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): { table: string; grown: number }[] =>
  [...after]
    .map(([table, count]) => ({ table, grown: count - (before.get(table) ?? 0) }))
    .filter(({ grown }) => grown !== 0)
    .toSorted((a, b) => b.grown - a.grown)

function bytesOf({ places, programs }: Plant): { cloud: number; journal: number; logs: number } {
  const size = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  const withLog = (file: string): number => size(file) + size(`${file}-wal`)
  return {
    cloud: withLog(places.database),
    journal: withLog(places.journal),
    logs: programs.reduce((sum, name) => sum + size(places.log(name)), 0),
  }
}
