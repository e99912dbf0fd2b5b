import type { ChildProcess } from 'node:child_process'
import { answer, dismiss, launch } from './children.ts'
import { quantile, ratios, type Figure } from './figures.ts'
import type { Load, Loaded } from './http-load.ts'
import { progress } from './progress.ts'
import { processorMs } from './process-figures.ts'

/** A server in a process of its own, and how the same thing is asked of it again and again. */
export interface Contestant {
  name: string
  port: number
  pid: number
  /** So many requests, as they go over the line. */
  requests: (count: number) => readonly string[]
  /** Waits for what it goes on with after it has answered. */
  rest?: () => Promise<void>
}

export interface PairedOptions {
  rounds: number
  /** Requests in a round, to either. */
  requests: number
  /** Unmeasured ones, to either, first of all: V8 goes on compiling for thousands of calls. */
  warmUp: number
  connections: number
  /** Into how many parts a round is cut, of which all contestants have one after the other; 1 where absent. */
  slices?: number
  /** Whether the one who asks never sleeps, as a processor of its own lets it (`http-load.ts`). */
  isAwake?: boolean
}

/** What was measured of one contestant, a value for each round. */
export interface Measured {
  perSecond: number[]
  p50: number[]
  /** Of the server, per request with all that follows it, in milliseconds. */
  processor: number[]
  /** Of an answer, head and all. */
  bytes: number[]
}

/**
 * Asks all contestants in turns, block by block, each round in another order: what else the machine does meets all alike, the
 * more so the more parts a round is cut into.
 */
export async function inTurns(
  contestants: readonly Contestant[],
  options: PairedOptions,
): Promise<Measured[]> {
  const { slices = 1 } = options
  const each = Math.ceil(options.requests / slices)
  const client = launch('http-load')
  const measured = contestants.map((): Measured => ({ perSecond: [], p50: [], processor: [], bytes: [] }))
  try {
    for (const one of contestants) {
      await ask(client, one, options.warmUp, options)
      await one.rest?.()
    }
    for (let round = 0; round < options.rounds; round += 1) {
      progress.show(
        `${contestants.map(({ name }) => name).join(', ')}: round ${round + 1} of ${options.rounds}`,
      )
      const spent = contestants.map(() => ({ elapsedMs: 0, times: [] as number[], bytes: 0, processor: 0 }))
      for (let slice = 0; slice < slices; slice += 1)
        for (let turn = 0; turn < contestants.length; turn += 1) {
          const index = (round + slice + turn) % contestants.length
          const one = contestants[index]!
          const sum = spent[index]!
          const before = processorMs(one.pid)
          const { elapsedMs, times, bytes } = await ask(client, one, each, options)
          await one.rest?.()
          sum.processor += processorMs(one.pid) - before
          sum.elapsedMs += elapsedMs
          sum.bytes += bytes
          sum.times.push(...times)
        }
      for (const [index, { elapsedMs, times, bytes, processor }] of spent.entries()) {
        const count = each * slices
        measured[index]!.perSecond.push((count / elapsedMs) * 1000)
        measured[index]!.p50.push(quantile(times, 0.5))
        measured[index]!.bytes.push(bytes / count)
        measured[index]!.processor.push(processor / count)
      }
    }
  } finally {
    await dismiss(client)
  }
  return measured
}

async function ask(
  client: ChildProcess,
  { port, requests }: Contestant,
  count: number,
  { connections, isAwake = false }: PairedOptions,
): Promise<Loaded> {
  const load: Load = { port, requests: requests(count), connections, isAwake }
  const loaded = answer(client)
  client.send(load)
  return (await loaded) as Loaded
}

/** Lines of the printed table: what was measured of one thing, beside its baseline. */
export function besideBare(name: string, larder: Measured, bare: Measured, aim?: string): Figure[] {
  return [
    { name: `${name}: Larder`, values: larder.perSecond, unit: 'requests/s' },
    { name: `${name}: bare`, values: bare.perSecond, unit: 'requests/s' },
    {
      name: `${name}: ratio`,
      values: ratios(larder.perSecond, bare.perSecond),
      unit: 'times the bare figure',
      ...(aim !== undefined && { aim }),
    },
    { name: `${name}: Larder, p50`, values: larder.p50, unit: 'ms' },
    { name: `${name}: bare, p50`, values: bare.p50, unit: 'ms' },
    {
      name: `${name}: processor, bare to Larder`,
      values: ratios(bare.processor, larder.processor),
      unit: 'times',
    },
  ]
}
