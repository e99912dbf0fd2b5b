import { join } from 'node:path'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { leaveUnsummed, writeBooks } from './books.ts'
import { answer, dismiss, launch } from './children.ts'
import { quantile, type Section } from './figures.ts'
import { residentMb } from './process-figures.ts'
import { serveCloud } from './served-cloud.ts'
import type { Crowd, CrowdReport } from './slow-crowd.ts'

export interface SlowConnectionsBench {
  runtime: Runtime
  folder: string
  /** Number of connections of each of the four kinds. */
  each: number
  /** How long they stay, and how long the callers are observed before. */
  seconds: number
}

const ORDERS = 20_000
const PAUSE_MS = 40
const WARM_UP = 2000
/**
 * Number of callers, each with an address and a key, because each key has a rate limit. The crowd has the
 * same keys.
 */
const KEYS = 150

/**
 * Measures the real cloud program with hundreds of connections that send headers, a body or a file byte by
 * byte, or hardly read an answer. Figures: the memory for them, and the service for other callers.
 */
export async function benchSlowConnections(options: SlowConnectionsBench): Promise<Section> {
  const { runtime, folder, each, seconds } = options
  const { clock } = runtime
  const file = join(folder, 'slow.sqlite')
  const db = await writeBooks({ file, orders: ORDERS, now: clock.now() })
  await leaveUnsummed(db)
  const keys: string[] = []
  const scopes = ['inventory:read', 'orders:read', 'maintenance:write'] as const
  for (let n = 0; n < KEYS; n += 1) {
    const request = { name: `bench ${n}`, ownerId: 1, hubs: '*', expiresAt: null } as const
    keys.push((await issueApiKey(db.kysely, runtime, { ...request, scopes })).key)
  }
  await db.close()
  const cloud = await serveCloud({ clock, folder: join(folder, 'cloud'), database: file })
  const crowd = launch('slow-crowd')
  const questions = ['/', '/api/v1/owners/hub_inventory/?hub_id=1'] as const
  let asked = 0

  async function call(path: string): Promise<number> {
    const who = asked++ % KEYS
    const headers = { 'X-API-Key': keys[who]!, 'X-Forwarded-For': `198.51.100.${who}` }
    const from = clock.monotonic()
    const response = await fetch(`http://127.0.0.1:${cloud.port}${path}`, { headers })
    await response.arrayBuffer()
    if (!response.ok) throw new Error(`${path} was answered ${response.status}`)
    return clock.monotonic() - from
  }

  /** Times of the callers by question, and the memory of the program, during the whole run. */
  async function watch(): Promise<{ times: number[][]; residentMb: number[] }> {
    const times: number[][] = questions.map(() => [])
    const resident: number[] = []
    for (
      const end = clock.monotonic() + seconds * 1000;
      clock.monotonic() < end;
      await sleep(clock, PAUSE_MS)
    ) {
      for (const [index, path] of questions.entries()) times[index]!.push(await call(path))
      resident.push(residentMb(cloud.pid))
    }
    return { times, residentMb: resident }
  }

  try {
    for (let n = 0; n < WARM_UP; n += 1) await call(questions[n % questions.length]!)
    const before = await watch()
    crowd.send({ port: cloud.port, each, keys } satisfies Crowd)
    const during = await watch()
    crowd.send('report')
    const { open, ended } = (await answer(crowd)) as CrowdReport
    const base = quantile(before.residentMb, 0.5)
    const p99 = (times: readonly number[]): number[] => [quantile(times, 0.99)]
    return {
      title: `${4 * each} slow connections for ${seconds} s, beside the same callers before`,
      figures: [
        { name: 'resident before', values: before.residentMb, unit: 'MB' },
        { name: 'resident meanwhile', values: during.residentMb, unit: 'MB' },
        {
          name: 'growth',
          values: during.residentMb.map((value) => value - base),
          unit: 'MB',
          aim: 'at most 50',
        },
        ...questions.flatMap((path, index) => [
          { name: `${path}, before, p99`, values: p99(before.times[index]!), unit: 'ms' },
          {
            name: `${path}, meanwhile, p99`,
            values: p99(during.times[index]!),
            unit: 'ms',
            aim: 'below 200',
          },
        ]),
      ],
      notes: [
        `a quarter each: headers, a JSON body, an uploaded file in small steps, ${each} who read 500 bytes a second of what they asked for`,
        `at the end ${open} were open; the program had ended ${ended}, which came again at once`,
      ],
    }
  } finally {
    await dismiss(crowd)
    await cloud.stop()
  }
}
