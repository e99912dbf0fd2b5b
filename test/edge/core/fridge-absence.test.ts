import { describe, expect, test } from 'vitest'
import { TestHub } from '../../world/hub.ts'

const MINUTE = 60_000

/** States reported of the fridge and its cabinets, oldest first. */
const told = (bench: TestHub): string[] =>
  bench.entries('state').flatMap(({ state }) => {
    if (state.of === 'fridge') return [`fridge ${state.state}`]
    return state.of === 'cabinet' && state.cabinet === 1 ? [`cabinet ${state.withheld}`] : []
  })

const status = (bench: TestHub) => bench.core.health().fridges[0]

/** Warms the fridge above its limit. */
function warm(bench: TestHub): void {
  bench.fault('warm_fridge')
  bench.runUntil(() => told(bench).includes('fridge warm'), 60 * MINUTE)
}

describe('fridges after a power cut', () => {
  test('a shutoff survives a power cut, and the half hour continues if the cloud knows its duration', () => {
    const bench = TestHub.ready()
    bench.core.setCloudClock(bench.core.cloudNow(), { passing: false })
    warm(bench)
    bench.run(20 * MINUTE)
    const wallBefore = bench.core.cloudNow()
    bench.kill()
    bench.clock.advance(5 * MINUTE)
    bench.begin()
    bench.run(1000)
    bench.core.setCloudClock(wallBefore + 5 * MINUTE, { passing: false })
    bench.run(3 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: false })
    bench.run(3 * MINUTE)
    expect(status(bench)).toMatchObject({ shutoff: true })
    bench.restart()
    bench.run(5000)
    expect(status(bench)).toMatchObject({ status: 'fault', shutoff: true })
    expect(told(bench).filter((line) => line === 'fridge shutoff')).toHaveLength(1)
  })

  test('after a power cut of unknown length a warm fridge is shut off, and a cold one is not', () => {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    bench.restart()
    bench.run(10 * MINUTE)
    expect(status(bench)).toMatchObject({ status: 'healthy', shutoff: false })
    bench.kill()
    bench.fault('warm_fridge')
    bench.clock.advance(15 * MINUTE)
    bench.begin()
    bench.run(30_000)
    expect(status(bench)).toMatchObject({ shutoff: false })
    bench.run(60_000)
    expect(status(bench)).toMatchObject({ status: 'fault', shutoff: true })
  })
})

describe('after hours without power, while the cloud has not sent its time', () => {
  /** The board's clock stood still, and an order waits. */
  function afterHours(meanwhile: (bench: TestHub) => void): TestHub {
    const bench = TestHub.ready()
    bench.welcome()
    bench.run(5 * MINUTE)
    bench.room.power('off')
    bench.run(1000)
    const before = bench.core.cloudNow()
    bench.queue(1, { 4: 1 }, { start_by: before + 60 * MINUTE })
    bench.kill()
    meanwhile(bench)
    bench.clock.advance(8 * 60 * MINUTE)
    bench.room.power('on')
    bench.journal
      .prepare("INSERT OR REPLACE INTO meta (key, value) VALUES ('clock', ?)")
      .run(JSON.stringify({ cloud: before, least: before, wall: bench.clock.now() }))
    bench.begin()
    return bench
  }

  test.each<[string, (bench: TestHub) => void]>([
    ['that is warm', () => {}],
    ['whose line is silent', (bench) => void bench.fault('silent_port', 'cold')],
  ])('an order gets no goods of a fridge %s', (_, begin) => {
    const bench = afterHours((bench) => {
      bench.fault('warm_fridge', 'fridge-1')
      begin(bench)
    })
    bench.run(4 * MINUTE)
    expect(bench.room.world.fridges.get('fridge-1')!.probe()!).toBeGreaterThan(15)
    expect(bench.dispenses()).toEqual([])
  })

  test('an order gets the goods of a fridge that proves to be cold in about a minute, and the cabinet is withheld until then', () => {
    const bench = afterHours(() => {})
    const before = told(bench).length
    bench.run(50_000)
    expect(bench.dispenses()).toEqual([])
    expect(told(bench).slice(before)).toEqual(['cabinet silent'])
    bench.run(30_000)
    expect(bench.dispenses()).toHaveLength(1)
    expect(told(bench).slice(before)).toEqual(['cabinet silent', 'cabinet null'])
  })

  test('an order does not wait for proofs once the cloud has sent its time after a short absence', () => {
    const bench = TestHub.ready()
    bench.welcome()
    bench.run(5 * MINUTE)
    const before = told(bench).length
    bench.room.power('off', 'vending')
    bench.queue(1, { 4: 1 })
    bench.restart()
    bench.room.power('on', 'vending')
    bench.run(1000)
    bench.welcome(2 * MINUTE)
    expect(bench.runUntil(() => bench.dispenses().length > 0, 10_000)).toBe(true)
    expect(told(bench).slice(before)).toEqual([])
  })

  test('the cabinet is withheld at once if the cloud’s time proves that the absence was long', () => {
    const bench = afterHours(() => {})
    bench.run(1000)
    const before = told(bench).length
    bench.welcome(8 * 60 * MINUTE)
    expect(told(bench).slice(before)).toEqual(['cabinet silent'])
  })
})

describe('a hub whose journal was lost', () => {
  /** The hub has sold before. Its next journal is new, and an order waits. */
  function lost(meanwhile: (bench: TestHub) => void): TestHub {
    const bench = TestHub.ready()
    bench.welcome()
    bench.run(5 * MINUTE)
    bench.queue(1, { 4: 1 })
    bench.runUntil(() => bench.dispenses().length === 1)
    bench.run(MINUTE)
    meanwhile(bench)
    bench.restartOn()
    bench.welcome()
    bench.apply(bench.snapshot())
    bench.queue(2, { 4: 1 }, { start_by: bench.core.cloudNow() + 60 * MINUTE })
    return bench
  }

  test('sells nothing of a fridge that was shut off before, also after a restart', () => {
    const bench = lost((bench) => {
      warm(bench)
      bench.run(31 * MINUTE)
      expect(status(bench)).toMatchObject({ shutoff: true })
    })
    bench.run(20_000)
    bench.restart()
    bench.welcome()
    bench.run(4 * MINUTE)
    expect(bench.dispenses()).toHaveLength(1)
    expect(status(bench)).toMatchObject({ shutoff: true })
  })

  test('sells the goods of a fridge that reads cold', () => {
    const bench = lost(() => {})
    bench.run(30_000)
    expect(bench.dispenses()).toHaveLength(2)
    expect(status(bench)).toMatchObject({ shutoff: false })
  })
})
