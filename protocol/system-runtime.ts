import { randomFillSync } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setTimeout as startTimer } from 'node:timers'
import { wholeMs, type Random, type Runtime } from './model/runtime.ts'

/** The system's clock and randomness. Only `main.ts` files, benchmarks and process tests use it. */
export function systemRuntime(): Runtime {
  return {
    clock: {
      now: () => new Date().getTime(),
      monotonic: () => performance.now(),
      after(delayMs, task) {
        // Node turns a delay above 2^31-1 into 1 ms. No timer of Larder is that long; a longer one may fire early.
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

/**
 * Random bytes from a pool that the system fills: a system call for a few bytes each time would dominate some requests.
 */
function randomBytes(count: number): Uint8Array {
  if (count > POOL_BYTES) return randomFillSync(new Uint8Array(count))
  if (used + count > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const bytes = pool.slice(used, used + count)
  // The bytes may be a secret, so the pool must not contain them any more.
  pool.fill(0, used, used + count)
  used += count
  return bytes
}

const systemRandom: Random = {
  bytes: randomBytes,
  fraction: () => randomFillSync(new Uint32Array(1))[0]! / 2 ** 32,
}
