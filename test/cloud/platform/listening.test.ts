import { expect, test } from 'vitest'
import { ListeningWatch } from '../../../cloud/platform/listening.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'

const GAP_MS = 10_000

/** A process with a clock, a broker and a database that the test controls. */
function openProcess() {
  let monotonic = 0
  let wall = 1_000_000
  let timers: { at: number; run: () => void }[] = []
  const clock: Clock = {
    now: () => wall,
    monotonic: () => monotonic,
    after(delayMs, run) {
      const timer = { at: monotonic + delayMs, run }
      timers.push(timer)
      return () => void (timers = timers.filter((one) => one !== timer))
    },
  }
  const world = { broker: true, database: true }
  const watch = new ListeningWatch({
    clock,
    gapMs: GAP_MS,
    hearsBroker: () => world.broker,
    pingDatabase: () => (world.database ? Promise.resolve() : Promise.reject(new Error('away'))),
  })
  watch.start()
  const pass = async (ms: number): Promise<void> => {
    for (const end = monotonic + ms; monotonic < end;) {
      const step = Math.min(500, end - monotonic)
      monotonic += step
      wall += step
      const due = timers.filter(({ at }) => at <= monotonic)
      timers = timers.filter(({ at }) => at > monotonic)
      for (const { run } of due) run()
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
    }
  }
  /** The process is suspended: no timer fires. */
  const standStill = (ms: number, of: { monotonic: boolean } = { monotonic: true }): void => {
    if (of.monotonic) monotonic += ms
    wall += ms
  }
  return { world, watch, pass, standStill }
}

test('an uninterrupted process has listened since its start', async () => {
  const { watch, pass } = openProcess()
  await pass(120_000)
  expect(watch.forMs()).toBe(120_000)
})

test('a short suspension is no interruption', async () => {
  const { watch, pass, standStill } = openProcess()
  await pass(60_000)
  standStill(GAP_MS - 2500)
  await pass(10_000)
  expect(watch.forMs()).toBe(60_000 + GAP_MS - 2500 + 10_000)
})

test.each([
  { name: 'a stopped process', monotonic: true },
  { name: 'a paused machine with a stopped monotonic clock', monotonic: false },
])('$name listens only from its wake-up on, before any of its timers has run', async ({ monotonic }) => {
  const { watch, pass, standStill } = openProcess()
  await pass(300_000)
  standStill(20 * 60_000, { monotonic })
  expect(watch.forMs()).toBe(0)
  await pass(30_000)
  expect(watch.forMs()).toBeGreaterThan(20_000)
  expect(watch.forMs()).toBeLessThanOrEqual(30_000)
})

test.each(['broker', 'database'] as const)(
  'a process without its %s does not listen, and listens again when it returns',
  async (part) => {
    const { watch, pass, world } = openProcess()
    await pass(300_000)
    world[part] = false
    await pass(5 * 60_000)
    expect(watch.forMs()).toBe(0)
    world[part] = true
    await pass(60_000)
    expect(watch.forMs()).toBeGreaterThan(50_000)
    expect(watch.forMs()).toBeLessThanOrEqual(60_000)
  },
)

test('a database that never answers counts as down', async () => {
  const { watch, pass, world } = openProcess()
  world.database = true
  await pass(1000)
  expect(watch.forMs()).toBe(1000)
  world.database = false
  await pass(GAP_MS + 5000)
  expect(watch.forMs()).toBe(0)
})
