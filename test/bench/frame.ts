import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { answer, dismiss, launch } from './children.ts'
import type { Section } from './figures.ts'
import { besideBare, inTurns } from './paired.ts'
import { addressOf, serveCloud } from './served-cloud.ts'

export interface FrameBench {
  runtime: Runtime
  folder: string
  rounds: number
  requests: number
}

/** V8 compiles during tens of thousands of calls, and one call is so short that a round needs many. */
const WARM_UP = 40_000
const TIMES = 5
const SLICES = 10

/**
 * Measures the cost of every request: a route without work, with limit, validation and headers; the baseline
 * is a bare Hono route.
 */
export async function benchFrame({ runtime, folder, rounds, requests }: FrameBench): Promise<Section> {
  mkdirSync(folder, { recursive: true })
  const of = TIMES * requests
  const cloud = await serveCloud({
    clock: runtime.clock,
    folder: join(folder, 'cloud'),
    database: join(folder, 'frame.sqlite'),
  })
  const bare = launch('bare-hello')
  try {
    const { port } = (await answer(bare)) as { port: number }
    let calls = 0
    const [larder, hello] = await inTurns(
      [
        {
          name: 'Larder',
          port: cloud.port,
          pid: cloud.pid,
          requests: (count) =>
            Array.from(
              { length: count },
              () =>
                `GET / HTTP/1.1\r\nHost: bench\r\nX-Forwarded-For: ${addressOf((calls += 1) % 20_000)}\r\n\r\n`,
            ),
        },
        {
          name: 'bare',
          port,
          pid: bare.pid!,
          requests: (count) => Array.from({ length: count }, () => 'GET / HTTP/1.1\r\nHost: bench\r\n\r\n'),
        },
      ],
      { rounds, requests: of, warmUp: WARM_UP, connections: 4, slices: SLICES, isAwake: true },
    )
    return {
      title: `a route that does nothing, beside bare Hono's hello (${rounds} rounds of ${of})`,
      figures: [
        ...besideBare('empty route', larder!, hello!),
        { name: 'empty route: processor, Larder', values: larder!.processor, unit: 'ms' },
        { name: 'empty route: processor, bare', values: hello!.processor, unit: 'ms' },
      ],
      notes: [
        'HTTP over loopback from a process of its own that never sleeps, as waking it would cost the slower server alone; aim: processor, bare to Larder, at least 0.5',
      ],
    }
  } finally {
    await cloud.stop()
    await dismiss(bare)
  }
}
