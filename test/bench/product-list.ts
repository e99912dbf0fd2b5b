import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { programCommand } from '../../simulator/demo/programs.ts'
import { ratios, type Figure, type Section } from './figures.ts'
import { inTurns, type Contestant, type Measured } from './paired.ts'
import { serveCloud } from './served-cloud.ts'

export interface ProductListBench {
  runtime: Runtime
  folder: string
  rounds: number
  /** Requests of each kind in a round. */
  requests: number
}

const LIST = '/hubs/1/products'
const WARM_UP = 3000
const CONNECTIONS = 4
/** Limits of unauthenticated callers are per address, so there are many addresses. */
const ADDRESSES = 60_000

/**
 * Measures a page of the demo's products as browsers request it: uncompressed, compressed, and conditional.
 */
export async function benchProductList(options: ProductListBench): Promise<Section> {
  const { runtime, folder, rounds, requests } = options
  const database = join(folder, 'demo.sqlite')
  const [command, ...args] = programCommand('cloud/demo/seed')
  const environment = { PATH: process.env['PATH'], DATABASE_URL: `sqlite:${database}`, DATA_DIR: folder }
  execFileSync(command!, args, { env: environment, stdio: ['ignore', 'ignore', 'inherit'] })
  const cloud = await serveCloud({ clock: runtime.clock, folder, database })
  try {
    const { headers } = await fetch(`http://127.0.0.1:${cloud.port}${LIST}`)
    let calls = 0
    const asking = (name: string, header: string): Contestant => ({
      name,
      port: cloud.port,
      pid: cloud.pid,
      requests: (count) =>
        Array.from({ length: count }, () => {
          const n = (calls += 1) % ADDRESSES
          return `GET ${LIST} HTTP/1.1\r\nHost: bench\r\nX-Forwarded-For: 10.0.${n >> 8}.${n & 255}\r\n${header}\r\n`
        }),
    })
    const kinds = [
      asking('whole', ''),
      asking('compressed', 'Accept-Encoding: gzip\r\n'),
      asking('unchanged', `If-None-Match: ${headers.get('ETag')!}\r\n`),
    ]
    const measured = await inTurns(kinds, { rounds, requests, warmUp: WARM_UP, connections: CONNECTIONS })
    const [whole, ...others] = measured
    return {
      title: `a page of the demo's products, ${headers.get('X-Total-Count')} in all: whole, compressed, unchanged (SQLite, ${rounds} rounds of ${requests})`,
      figures: [
        ...kinds.flatMap(({ name }, index) => plain(name, measured[index]!)),
        ...others.flatMap((each, index) => besideWhole(kinds[index + 1]!.name, each, whole!)),
      ],
      notes: [
        'one process, the three kinds in turns, each round in another order; HTTP over loopback from a process of its own',
        'bytes: whole answers, heads and all; unchanged: 304 to If-None-Match',
      ],
    }
  } finally {
    await cloud.stop()
  }
}

const plain = (name: string, { bytes, processor, p50 }: Measured): Figure[] => [
  { name, values: bytes, unit: 'bytes' },
  { name: `${name}: processor`, values: processor, unit: 'ms' },
  { name: `${name}: p50`, values: p50, unit: 'ms' },
]

const besideWhole = (name: string, one: Measured, whole: Measured): Figure[] => [
  { name: `${name} to whole: bytes`, values: ratios(one.bytes, whole.bytes), unit: 'times' },
  { name: `${name} to whole: processor`, values: ratios(one.processor, whole.processor), unit: 'times' },
]
