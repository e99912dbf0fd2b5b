import type { ChildProcess } from 'node:child_process'
import { answer, dismiss, launch } from './children.ts'
import { quantile, ratios, type Figure } from './figures.ts'
import type { Load, Loaded } from './http-load.ts'
import { progress } from './progress.ts'
import { processorMs } from './process-figures.ts'

/** A server in a separate process, and the request that is sent to it repeatedly. */
export interface Contestant {
  name: string
  port: number
  pid: number
  /** Creates `count` requests, as bytes on the line. */
  requests: (count: number) => readonly string[]
  /** Waits for the work that continues after an answer. */
  rest?: () => Promise<void>
}

export interface PairedOptions {
  rounds: number
  /** Requests per round to each contestant. */
  requests: number
  /** Unmeasured requests to each contestant at the start: V8 compiles during thousands of calls. */
  warmUp: number
  connections: number
  /** Number of parts of a round; all contestants take turns in each part. Default 1. */
  slices?: number
  /** Whether the client never sleeps, if it has its own processor (`http-load.ts`). */
  isAwake?: boolean
}

/** Measurements of one contestant, a value for each round. */
export interface Measured {
  perSecond: number[]
  p50: number[]
  /** Processor time of the server per request, including follow-up work, in milliseconds. */
  processor: number[]
  /** Bytes of an answer with headers. */
  bytes: number[]
}

/**
 * Measures all contestants in turns, block by block, with another order in each round. Other load of the
 * machine then affects all alike, and more evenly with more parts.
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
    for (const one of contestants)
      for (let left = options.warmUp; left > 0; left -= each) {
        await ask(client, one, Math.min(left, each), options)
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

/** Lines of the printed table: measurements of one subject, beside its baseline. */
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
