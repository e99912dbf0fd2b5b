import { describe, expect, test } from 'vitest'
import { TestHub } from '../../world/hub.ts'

const MINUTE = 60_000

/** Alarms that the hub has raised. */
const raised = (bench: TestHub): string[] =>
  bench.entries('alarm').flatMap(({ code, subject, raised }) => (raised ? `${code} ${subject}` : []))

describe('a hub that was suspended', () => {
  test.each<[string, (bench: TestHub) => void, (bench: TestHub) => void]>([
    ['nothing happened', () => {}, () => {}],
    [
      'an open door was closed',
      (bench) => {
        bench.core.unlockDoor('main', 10_000)
        bench.room.act({ action: 'open_door', target: 'main' })
        bench.run(MINUTE)
      },
      (bench) => bench.room.act({ action: 'close_door', target: 'main' }),
    ],
    [
      'a controller got its power back',
      (bench) => {
        bench.room.power('off', 'cold')
        bench.run(10_000)
      },
      (bench) => bench.room.power('on', 'cold'),
    ],
  ])('raises no alarm if %s during that time', (_name, before, during) => {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    before(bench)
    bench.clock.after(5 * MINUTE, () => during(bench))
    bench.suspend(15 * MINUTE)
    bench.run(10 * MINUTE)
    expect(raised(bench)).toEqual([])
  })

  test('sells nothing of a fridge after hours before its readings prove the cold, and then sells again', () => {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    bench.suspend(180 * MINUTE)
    bench.queue(1, { 4: 1 })
    bench.run(40_000)
    expect(bench.dispenses()).toEqual([])
    bench.run(5 * MINUTE)
    expect(bench.dispenses()).toHaveLength(1)
    expect(bench.core.health().fridges[0]).toMatchObject({ status: 'healthy', shutoff: false })
    expect(raised(bench)).toEqual([])
  })
})

test('a short power failure raises no alarm of a warm fridge that stayed cold', () => {
  const bench = TestHub.ready()
  bench.core.setCloudClock(bench.core.cloudNow(), { passing: false })
  bench.run(5 * MINUTE)
  const before = bench.core.cloudNow()
  bench.kill()
  bench.clock.advance(15 * MINUTE)
  bench.begin()
  bench.core.setCloudClock(before + 15 * MINUTE, { passing: false })
  bench.run(10 * MINUTE)
  expect(raised(bench).filter((alarm) => alarm.startsWith('fridge'))).toEqual([])
})
