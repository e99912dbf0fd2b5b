import { expect, test } from 'vitest'
import { startWaiting, type Waiting } from '../../edge/waiting.ts'
import { MAIN_DOOR } from '../../protocol/model/hardware.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { defaultHubSettings } from '../../protocol/settings/hub-limits.ts'
import { seededChance } from '../simulation/chance.ts'
import { TestHub } from '../world/hub.ts'

const RIGHT = 'fridge_1_right'

/** The journal of a hub fails while a row behind the right fridge door turns. */
function waiting(): { bench: TestHub; core: Waiting['core'] } {
  const bench = TestHub.ready()
  bench.queue(1, { 4: 1 })
  expect(bench.runUntil(() => bench.dispenses().length > 0, 10_000)).toBe(true)
  bench.kill()
  const { core } = startWaiting({
    runtime: { clock: bench.clock, random: seededChance(1) },
    log: silentLog,
    hardware: bench.hardware,
    gpio: bench.room.gpio.asLines(),
    openTransport: () => ({ publish: () => Promise.resolve(false), close() {} }),
    settings: defaultHubSettings,
    software: 'larder-edge test',
    fault: () => ({
      reason: 'io_error',
      setting: 'STORE',
      path: '/data/hub.sqlite',
      detail: 'the card fails',
    }),
  })
  return { bench, core }
}

test('a hub without a usable journal keeps a fridge door locked until a row behind it must have stopped', () => {
  const { bench, core } = waiting()
  const why = expect.stringMatching(/^A row behind this door may still turn\. .* in 15 s/) as string
  expect(core.unlockDoor(RIGHT, 30_000)).toEqual({ ok: false, reason: 'not_now', why })
  expect(bench.room.gpio.get(`${RIGHT}_lock`)).toBe(0)
  bench.clock.advance(14_000)
  expect(core.unlockDoor(RIGHT, 30_000).ok).toBe(false)
  bench.clock.advance(1000)
  expect(core.unlockDoor(RIGHT, 30_000)).toEqual({ ok: true })
  expect(bench.room.gpio.get(`${RIGHT}_lock`)).toBe(1)
})

test('a hub without a usable journal unlocks the main door at once', () => {
  const { bench, core } = waiting()
  expect(core.unlockDoor(MAIN_DOOR, 10_000)).toEqual({ ok: true })
  expect(bench.room.gpio.get(`${MAIN_DOOR}_lock`)).toBe(1)
  expect(core.unlockDoor('fridge_9_left', 10_000)).toEqual({ ok: false, reason: 'unavailable' })
})
