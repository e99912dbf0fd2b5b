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

const systemRandom: Random = {
  bytes: (count) => randomFillSync(new Uint8Array(count)),
  fraction: () => randomFillSync(new Uint32Array(1))[0]! / 2 ** 32,
}
