import { defineConfig } from 'vitest/config'

/** Real programs, sockets and services, or thousands of calls: each file has a process of its own. */
const system = ['test/*.test.ts', 'test/{contract,process,simulation}/**/*.test.ts', 'test/edge/**/*.test.ts']

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    // `epoll` (under onoff) is not safe in worker threads.
    pool: 'forks',
    // By default one processor would stand idle: of two, half of them.
    maxWorkers: '100%',
    testTimeout: 20_000,
    hookTimeout: 60_000,
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
      { extends: true, test: { name: 'system', include: system } },
    ],
  },
})
