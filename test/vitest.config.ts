import { defineConfig } from 'vitest/config'
import { leftOut } from './support/long-tests.ts'
import { LongestFirst } from './support/longest-first.ts'
import { SecondTryReporter } from './support/second-try.ts'

/** Real programs, sockets and services, or a module in place of another: each file has a process of its own. */
const system = [
  'test/edge/core/bad-items.test.ts',
  'test/*.test.ts',
  'test/{browser,process,simulation}/**/*.test.ts',
  'test/edge/!(core)/**/*.test.ts',
  'test/edge/*.test.ts',
]
/** A whole cloud, or a whole hub, within the test's process. */
const wholes = ['test/contract/**/*.test.ts', 'test/edge/core/**/*.test.ts']

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    // `epoll` (under onoff) is not safe in worker threads.
    pool: 'forks',
    // By default one processor would stand idle: of two, half of them. One more than there are, and what keeps real time fails.
    maxWorkers: '100%',
    // A limit for what hangs: how long anything takes is measured by the benchmarks alone.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ['default', new SecondTryReporter()],
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/temporary-folder.ts'],
    setupFiles: process.env['SMALL_LIMITS'] === '1' ? ['test/support/small-limits.ts'] : [],
    projects: [
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['test/{protocol,cloud,simulator}/**/*.test.ts'],
          // What a file imports is loaded once a worker: loading took longer than testing.
          isolate: false,
        },
      },
      // In real time a busy machine can upset a proof: it is tried once more, and named at the end.
      { extends: true, test: { name: 'wholes', include: wholes, exclude: system, isolate: false, retry: 1 } },
      { extends: true, test: { name: 'system', include: system, exclude: [...leftOut], retry: 1 } },
    ],
  },
})
