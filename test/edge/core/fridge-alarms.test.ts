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
