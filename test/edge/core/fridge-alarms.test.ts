import { expect, test } from 'vitest'
import { TestHub } from '../../world/hub.ts'

const MINUTE = 60_000

test.each<[string, (bench: TestHub) => void]>([
  ['without readings of its probe', (bench) => void bench.fault('broken_probe')],
  ['with a silent controller', (bench) => void bench.fault('silent_port', 'cold')],
  ['with a controller without power', (bench) => bench.room.power('off', 'cold')],
])(
  'a restart of the hub neither ends the alarm of a fridge %s nor reports the fridge as warm',
  (_name, begin) => {
    const bench = TestHub.ready()
    bench.run(5 * MINUTE)
    begin(bench)
    bench.run(20 * MINUTE)
    bench.restart()
    bench.run(20 * MINUTE)
    const alarms = bench.entries('alarm').filter(({ code }) => /^fridge_(unreadable|warm)$/.test(code))
    expect(alarms).toMatchObject([{ code: 'fridge_unreadable', raised: true }])
  },
)

test('a single reading after a restart does not end the alarm of a fridge with a flickering probe', () => {
  const bench = TestHub.ready()
  bench.run(5 * MINUTE)
  bench.fault('broken_probe')
  bench.run(20 * MINUTE)
  bench.restart()
  bench.room.faults.clearAll()
  bench.run(40_000)
  const alarms = () => bench.entries('alarm').filter(({ code }) => code === 'fridge_unreadable')
  expect(alarms()).toMatchObject([{ raised: true }])
  bench.run(20 * MINUTE)
  expect(alarms()).toMatchObject([{ raised: true }, { raised: false }])
})
