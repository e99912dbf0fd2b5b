import { rateClasses } from '../../protocol/contract/route.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { join } from 'node:path'
import { durableCommits } from './bare-commits.ts'
import { createCaller } from './caller.ts'
import { answer, dismiss, launch } from './children.ts'
import { quantile, ratios, type Section } from './figures.ts'
import { install } from './installation.ts'
import { processorMs } from './process-figures.ts'

export interface RoundTripOptions {
  runtime: Runtime
  folder: string
  rounds: number
  /** Calls of each kind in each round. */
  calls: number
}

/** V8 compiles during some thousands of calls, which a service of weeks has long passed. */
const WARM_UP = 2000
/** Unmeasured calls before each measured block: the other kind has used the processor's caches. */
const LEAD = 5
const READY_MS = 30_000
/** Durable commits that an answer waits for. */
const COMMITS = 4

const hardware = {
  hubId: 1,
  controllers: [
    {
      id: 'bins',
      port: 'ports/bins',
      devices: [1, 2, 3, 4].map((number) => ({ kind: 'bin' as const, number })),
    },
  ],
  gpio: { chipLabel: 'none', lines: [] },
}

/**
 * Measures `open_bin` from HTTP to the pseudo-terminal and back: the real cloud program on SQLite with its
 * own broker, the real hub program with its journal on the disk. The baseline, in turns block by block, is
 * the bare hops.
 */
export async function benchRoundTrip({ runtime, folder, rounds, calls }: RoundTripOptions): Promise<Section> {
  const { clock } = runtime
  const echoLink = join(folder, 'echo')
  const installation = await install({
    folder,
    runtime,
    hardware,
    run: { cloud: {}, edge: { GPIO: 'none' } },
  })
  const total = rounds * (calls + LEAD) + WARM_UP
  const keys = await makeKeys(
    Math.ceil(total / rateClasses[routes['owner.controls.open_bin'].rate].requests) + 1,
  )
  const lines = launch('line-ends', [join(installation.places.hub, 'ports/bins'), echoLink])
  await answer(lines)
  const bareCloud = launch('bare-cloud')
  const { httpPort, mqttPort } = (await answer(bareCloud)) as { httpPort: number; mqttPort: number }
  const bareHub = launch('bare-hub', [String(mqttPort), echoLink])
  const callers = { larder: createCaller(), bare: createCaller() }
  try {
    await answer(bareHub)
    installation.start()
    await untilReady()
    await block(larder, WARM_UP)
    await block(bare, WARM_UP)
    const timesOf = { larder: [] as number[][], bare: [] as number[][] }
    const commits: number[] = []
    const work: Record<Worker, number[]> = { cloud: [], hub: [], bareCloud: [], bareHub: [] }
    for (let round = 0; round < rounds; round++) {
      const both = [
        async () =>
          timesOf.larder.push(
            await watched(
              work,
              ['cloud', installation.pidOf('cloud')],
              ['hub', installation.pidOf('edge')],
              larder,
            ),
          ),
        async () =>
          timesOf.bare.push(
            await watched(work, ['bareCloud', bareCloud.pid!], ['bareHub', bareHub.pid!], bare),
          ),
      ]
      for (const one of round % 2 === 0 ? both : both.toReversed()) await one()
      commits.push(quantile(durableCommits(join(folder, 'commits.sqlite'), calls).times, 0.5))
    }
    installation.check()
    return section({ timesOf, commits, work, rounds, calls })
  } finally {
    for (const caller of Object.values(callers)) caller.close()
    await installation.stop()
    await Promise.all([bareHub, bareCloud, lines].map(dismiss))
  }

  /** Keys for all calls, because each key has a rate limit. */
  async function makeKeys(count: number): Promise<string[]> {
    const db = openDatabase({ url: installation.addresses.databaseUrl })
    const { owner_id: ownerId } = await db.kysely
      .selectFrom('hubs')
      .select('owner_id')
      .where('id', '=', installation.hubId)
      .executeTakeFirstOrThrow()
    const made: string[] = []
    for (let n = 0; n < count; n++) {
      const name = `bench ${n}`
      const request = { name, ownerId, scopes: ['controls:write'], hubs: '*', expiresAt: null } as const
      made.push((await issueApiKey(db.kysely, runtime, request)).key)
    }
    await db.close()
    return made
  }

  async function larder(n: number): Promise<boolean> {
    const url = `${installation.addresses.baseUrl}/api/v1/owners/controls/open_bin?hub=${installation.hubId}&bin=1`
    const { status } = await callers.larder.post(url, { 'X-API-Key': keys[n % keys.length]! })
    return status === 200
  }

  async function bare(): Promise<boolean> {
    const { status } = await callers.bare.post(`http://127.0.0.1:${httpPort}/open_bin`)
    return status === 200
  }

  /** Runs a block of calls; measures the processor time of the two processes that carry them. */
  async function watched(
    work: Record<Worker, number[]>,
    cloud: [Worker, number],
    hub: [Worker, number],
    call: (n: number) => Promise<boolean>,
  ): Promise<number[]> {
    const before = [processorMs(cloud[1]), processorMs(hub[1])]
    const times = await block(call, calls)
    for (const [index, [worker, pid]] of [cloud, hub].entries())
      work[worker].push((processorMs(pid) - before[index]!) / (calls + LEAD))
    return times
  }

  async function block(call: (n: number) => Promise<boolean>, count: number): Promise<number[]> {
    const times: number[] = []
    for (let n = 0; n < count + LEAD; n++) {
      const begun = clock.monotonic()
      if (!(await call(n))) throw new Error('a call of the round trip failed')
      if (n >= LEAD) times.push(clock.monotonic() - begun)
    }
    return times
  }

  async function untilReady(): Promise<void> {
    const end = clock.monotonic() + READY_MS
    for (let n = 0; clock.monotonic() < end; n++) {
      installation.check()
      if (await larder(n).catch(() => false)) return
      await sleep(clock, 200)
    }
    throw new Error(`the hub does not open its bin; see ${installation.places.logs}`)
  }
}

type Worker = 'cloud' | 'hub' | 'bareCloud' | 'bareHub'

interface Measured extends Pick<RoundTripOptions, 'rounds' | 'calls'> {
  timesOf: { larder: number[][]; bare: number[][] }
  commits: number[]
  /** Processor time in milliseconds per call. */
  work: Record<Worker, number[]>
}

function section({ timesOf, commits, work, rounds, calls }: Measured): Section {
  const p50 = (blocks: number[][]): number[] => blocks.map((times) => quantile(times, 0.5))
  const p90 = (blocks: number[][]): number[] => blocks.map((times) => quantile(times, 0.9))
  const { larder, bare } = timesOf
  const floor = p50(bare).map((ms, round) => ms + COMMITS * commits[round]!)
  return {
    title: `round trip of open_bin, HTTP → hub → pseudo-terminal → back (${rounds} rounds of ${calls} calls each)`,
    figures: [
      { name: 'Larder: audit, fence, journal; p50', values: p50(larder), unit: 'ms' },
      { name: 'Larder, p90', values: p90(larder), unit: 'ms' },
      { name: 'the same hops bare, p50', values: p50(bare), unit: 'ms' },
      { name: 'bare, p90', values: p90(bare), unit: 'ms' },
      { name: 'ratio of p50', values: ratios(p50(larder), p50(bare)), unit: 'times', aim: 'at most 3' },
      { name: 'ratio of p90', values: ratios(p90(larder), p90(bare)), unit: 'times' },
      { name: 'processor, per call: the cloud', values: work.cloud, unit: 'ms' },
      { name: 'processor, per call: the hub', values: work.hub, unit: 'ms' },
      {
        name: 'processor, per call: the bare processes',
        values: sums(work.bareCloud, work.bareHub),
        unit: 'ms',
      },
      { name: 'one durable commit on this disk, p50', values: commits, unit: 'ms' },
      { name: `bare hops and ${COMMITS} such commits`, values: floor, unit: 'ms' },
      { name: 'ratio to that', values: ratios(p50(larder), floor), unit: 'times' },
    ],
    notes: [
      `${COMMITS} durable commits follow one another: the command's row, the hub's intent, its outcome, how the hub stands after it; the row's end and the audit follow with the hub's ledger`,
    ],
  }
}

const sums = (values: readonly number[], others: readonly number[]): number[] =>
  values.map((value, index) => value + others[index]!)
