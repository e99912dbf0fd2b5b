import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { isLongRun, leftOut, waiting } from './support/long-tests.ts'
import { LongestFirst } from './support/longest-first.ts'
import { SecondTryReporter } from './support/second-try.ts'

/**
 * Tests with real programs, sockets and services, or with a replaced module: each file has its own process.
 */
const system = [
  'test/edge/core/bad-items.test.ts',
  'test/*.test.ts',
  'test/{browser,process,simulation}/**/*.test.ts',
  'test/edge/!(core)/**/*.test.ts',
  'test/edge/*.test.ts',
]
/** Tests with a whole cloud, or a whole hub, in the test's process. */
const wholes = ['test/contract/**/*.test.ts', 'test/edge/core/**/*.test.ts']

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    // `epoll` (under onoff) is not safe in worker threads.
    pool: 'forks',
    // The default would leave half of two processors idle. With more workers than processors real-time tests
    // fail, unless they mostly wait.
    maxWorkers: '100%',
    // A limit for tests that hang. Only the benchmarks measure durations.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // A busy machine needs more than the default second until a state is reached.
    expect: { poll: { timeout: 15_000 } },
    // The list of second tries shows the message only, without a difference: the message must hold the values.
    chaiConfig: { truncateThreshold: 2000 },
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
          exclude: [...leftOut],
          // A worker loads each import once: loading took longer than testing.
          isolate: false,
        },
      },
      // A busy machine can upset a real-time test: it is tried once more, and listed at the end.
      {
        extends: true,
        test: { name: 'wholes', include: wholes, exclude: [...system, ...leftOut], isolate: false, retry: 1 },
      },
      {
        extends: true,
        test: { name: 'system', include: system, exclude: [...waiting, ...leftOut], retry: 1 },
      },
      {
        extends: true,
        test: {
          name: 'waiting',
          include: isLongRun ? [...waiting] : [],
          retry: 1,
          maxWorkers: availableParallelism() + 1,
          // Alone, after all others: each of these files uses less than half of a processor.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
