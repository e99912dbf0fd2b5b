import { randomFillSync } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setTimeout as startTimer } from 'node:timers'
import { wholeMs, type Random, type Runtime } from './model/runtime.ts'

/** The system's own clock and source of chance. Only `main.ts` files, benchmarks and process tests use it. */
export function systemRuntime(): Runtime {
  return {
    clock: {
      now: () => new Date().getTime(),
      monotonic: () => performance.now(),
      after(delayMs, task) {
        // Node turns a delay above 2^31-1 into 1 ms; no timer of ours is that long, and one that is may fire early.
        const timer = startTimer(task, Math.min(wholeMs(delayMs), 0x7fffffff))
        return () => timer.close()
      },
    },
    random: systemRandom,
  }
}

const POOL_BYTES = 4096
const pool = new Uint8Array(POOL_BYTES)
let used = POOL_BYTES

/** From a pool that the system fills: asking it for a few bytes each time is most of what some requests do. */
function randomBytes(count: number): Uint8Array {
  if (count > POOL_BYTES) return randomFillSync(new Uint8Array(count))
  if (used + count > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const bytes = pool.slice(used, used + count)
  // What was handed out may be a secret: it is nowhere else.
  pool.fill(0, used, used + count)
  used += count
  return bytes
}

const systemRandom: Random = {
  bytes: randomBytes,
  fraction: () => randomFillSync(new Uint32Array(1))[0]! / 2 ** 32,
}
