import { describe, expect, test } from 'vitest'
import { TestHub } from '../../world/hub.ts'

const door = (bench: TestHub, name: string): string | undefined =>
  bench.core.health().doors.find((each) => each.door === name)?.status

test('a door is unlocked for a limited time, and locked again', () => {
  const bench = TestHub.ready()
  expect(door(bench, 'main')).toBe('locked')
  expect(bench.core.unlockDoor('main', 5000)).toEqual({ ok: true })
  expect(door(bench, 'main')).toBe('unlocked')
  bench.run(4999)
  expect(bench.room.gpio.get('main_lock')).toBe(1)
  bench.run(2)
  expect(bench.room.gpio.get('main_lock')).toBe(0)
  expect(bench.core.unlockDoor('main', 10 ** 9)).toEqual({ ok: true })
  bench.run(10 * 60_000 + 1)
  expect(bench.room.gpio.get('main_lock')).toBe(0)
  expect(bench.core.unlockDoor('attic', 5000)).toEqual({ ok: false, reason: 'unavailable' })
})

test('a lock that an earlier life left open is locked at the start, and only its line is driven', () => {
  const bench = TestHub.ready()
  bench.core.unlockDoor('fridge_1_left', 60_000)
  bench.kill()
  expect(bench.room.gpio.get('fridge_1_left_lock')).toBe(1)
  bench.begin()
  expect(bench.room.gpio.get('fridge_1_left_lock')).toBe(0)
})

test('a stop locks every lock', () => {
  const bench = TestHub.ready()
  bench.core.unlockDoor('main', 60_000)
  bench.core.stop()
  expect(bench.room.gpio.get('main_lock')).toBe(0)
})

test('a door that opens while locked is one alarm until it closes, and an unlocked door is none', () => {
  const bench = TestHub.ready()
  bench.core.unlockDoor('main', 2000)
  bench.room.act({ action: 'open_door', target: 'main' })
  bench.run(5000)
  expect(door(bench, 'main')).toBe('open')
  expect(bench.entries('alarm')).toEqual([])
  bench.room.act({ action: 'close_door', target: 'main' })
  bench.run(3000)
  bench.fault('door_forced', 'main')
  bench.run(3000)
  bench.restart()
  bench.run(1000)
  expect(bench.entries('alarm')).toMatchObject([{ code: 'door_forced', subject: 'door main', raised: true }])
  bench.room.act({ action: 'close_door', target: 'main' })
  // A door that opens again soon must stay closed for longer.
  bench.run(5000)
  expect(bench.entries('alarm').at(-1)).toMatchObject({ code: 'door_forced', raised: false })
})

test.each(['over a restart', 'while its line could not be read'] as const)(
  'a legitimately opened door that was locked later is no alarm: it has stood open %s',
  (how) => {
    const bench = TestHub.ready()
    bench.core.unlockDoor('main', 10_000)
    bench.room.act({ action: 'open_door', target: 'main' })
    bench.run(5000)
    if (how === 'over a restart') bench.restart()
    else {
      bench.hasLines = false
      bench.run(50_000)
      bench.hasLines = true
    }
    bench.run(65_000)
    expect(door(bench, 'main')).toBe('open')
    expect(bench.entries('alarm')).toEqual([])
  },
)

test('a door that was closed before the hub stopped, and is open afterwards, is an alarm', () => {
  const bench = TestHub.ready()
  bench.kill()
  bench.fault('door_forced', 'main')
  bench.begin()
  bench.run(2000)
  expect(bench.entries('alarm')).toMatchObject([{ code: 'door_forced', subject: 'door main', raised: true }])
})

describe('a main door with a flickering contact', () => {
  const codes = (bench: TestHub) => bench.entries('alarm').map(({ code, raised }) => `${code} ${raised}`)

  test('a main door that is forced after it was locked again is an alarm of force', () => {
    const bench = TestHub.ready()
    bench.core.unlockDoor('main', 10_000)
    bench.run(8000)
    bench.fault('blinking_contact', 'main', { for_ms: 30_000 })
    bench.run(29_000)
    bench.fault('door_forced', 'main')
    bench.run(10_000)
    expect(door(bench, 'main')).toBe('open')
    expect(codes(bench)).toContain('door_forced true')
  })

  test('a main door that a technician unlocks and opens is no alarm of force', () => {
    const bench = TestHub.ready()
    bench.fault('blinking_contact', 'main', { for_ms: 30_000 })
    bench.run(25_000)
    bench.core.unlockDoor('main', 20_000)
    bench.run(1000)
    expect(bench.room.act({ action: 'open_door', target: 'main' })).toMatchObject({ ok: true })
    bench.run(10_000)
    expect(door(bench, 'main')).toBe('open')
    expect(codes(bench)).not.toContain('door_forced true')
  })
})

test.each(['in the moment of its locking', 'while its contact could not be read'] as const)(
  'a door that a technician opens %s is no alarm of force',
  (when) => {
    const bench = TestHub.ready()
    bench.core.unlockDoor('main', 10_000)
    if (when === 'in the moment of its locking') bench.run(9990)
    else bench.blindLines.add('main_door')
    bench.room.act({ action: 'open_door', target: 'main' })
    bench.run(12_000)
    bench.blindLines.clear()
    bench.run(65_000)
    expect(door(bench, 'main')).toBe('open')
    expect(bench.entries('alarm').map(({ code }) => code)).not.toContain('door_forced')
  },
)

test('a locked door that is forced while no line can be read is an alarm of force afterwards', () => {
  const bench = TestHub.ready()
  bench.hasLines = false
  bench.run(65_000)
  bench.fault('door_forced', 'main')
  bench.run(65_000)
  bench.hasLines = true
  bench.run(5000)
  expect(bench.entries('alarm').map(({ code }) => code)).toContain('door_forced')
})

test('a controller that stays silent is an alarm, until it has returned for a while', () => {
  const bench = TestHub.ready()
  bench.room.power('off', 'cold')
  bench.run(30_000)
  expect(bench.entries('alarm')).toEqual([])
  bench.run(120_000)
  expect(bench.entries('alarm')).toMatchObject([
    { code: 'controller_silent', subject: 'controller cold', raised: true },
  ])
  expect(bench.core.health().fridges[0]).toMatchObject({ status: 'offline' })
  bench.room.power('on', 'cold')
  bench.run(20_000)
  expect(bench.entries('alarm')).toHaveLength(1)
  bench.run(80_000)
  expect(bench.entries('alarm').at(-1)).toMatchObject({ code: 'controller_silent', raised: false })
})

test('alarms of removed hardware end, and other alarms stay', () => {
  const bench = TestHub.ready()
  bench.room.power('off', 'cold')
  bench.room.power('off', 'bins')
  bench.run(150_000)
  expect(bench.core.alarms().map(({ subject }) => subject)).toEqual(['controller bins', 'controller cold'])
  const { controllers } = bench.hardware
  bench.hardware = { ...bench.hardware, controllers: controllers.filter(({ id }) => id !== 'cold') }
  bench.restart()
  bench.run(1000)
  expect(bench.core.alarms().map(({ subject }) => subject)).toEqual(['controller bins'])
  expect(bench.entries('alarm').at(-1)).toMatchObject({ subject: 'controller cold', raised: false })
})

test('a device on the wrong line is ignored there, with an alarm until its controller connects correctly', () => {
  const bench = TestHub.ready()
  const event = { device: 'bin-1', door: 'open', lift: 'up', occupied: true } as const
  bench.core.controllerEvents.onDevice('vending', event)
  bench.core.controllerEvents.onDevice('cold', { device: 'bin-9' })
  expect(bench.core.health().bins[0]).toMatchObject({ door: 'closed', lift: 'down', occupied: false })
  expect(bench.entries('alarm')).toMatchObject([
    {
      code: 'controller_foreign',
      subject: 'controller vending',
      raised: true,
      detail: 'bin-1 is on its line',
    },
    { code: 'controller_foreign', subject: 'controller cold', raised: true },
  ])
  bench.room.power('off', 'vending')
  bench.run(5000)
  bench.room.power('on', 'vending')
  bench.run(5000)
  expect(bench.entries('alarm').slice(2)).toMatchObject([
    { code: 'controller_foreign', subject: 'controller vending', raised: false },
  ])
})

test('lines that cannot be read for a minute are an alarm like a silent controller, until they can be read', () => {
  const bench = TestHub.ready()
  bench.hasLines = false
  bench.run(3 * 60_000)
  expect(door(bench, 'main')).toBe('unknown')
  bench.hasLines = true
  bench.run(2 * 60_000)
  const alarms = bench.entries('alarm').filter(({ subject }) => subject === 'controller gpio')
  expect(alarms).toMatchObject([
    { code: 'controller_silent', raised: true, detail: 'no line of a lock or door can be read' },
    { code: 'controller_silent', raised: false },
  ])
})

test('a door left open is an alarm until it is closed', () => {
  const bench = TestHub.ready()
  bench.core.unlockDoor('main', 10_000)
  bench.room.act({ action: 'open_door', target: 'main' })
  bench.run(4 * 60_000)
  expect(bench.entries('alarm')).toEqual([])
  bench.run(3 * 60_000)
  expect(bench.entries('alarm')).toMatchObject([
    { code: 'door_left_open', subject: 'door main', raised: true },
  ])
  bench.room.act({ action: 'close_door', target: 'main' })
  bench.run(2 * 60_000)
  expect(bench.entries('alarm').at(-1)).toMatchObject({ code: 'door_left_open', raised: false })
})

describe('a lock that fails to lock', () => {
  const stuck = (bench: TestHub): TestHub => {
    bench.core.unlockDoor('main', 5000)
    bench.stuckLines.add('main_lock')
    return bench
  }
  const trouble = (bench: TestHub) => bench.entries('alarm').filter(({ code }) => code === 'door_left_open')

  test('a lock that fails to lock in time is one alarm, and is tried again until it locks', () => {
    const bench = stuck(TestHub.ready())
    bench.run(14_000)
    expect(trouble(bench)).toEqual([])
    bench.run(120_000)
    expect(trouble(bench)).toMatchObject([
      { subject: 'door main', raised: true, detail: 'its lock does not lock' },
    ])
    expect(door(bench, 'main')).toBe('unlocked')
    bench.stuckLines.clear()
    bench.run(2000)
    expect(bench.room.gpio.get('main_lock')).toBe(0)
    expect(trouble(bench).at(-1)).toMatchObject({ raised: false })
  })

  test('a lock that fails to lock is an alarm also in the hub’s next life', () => {
    const bench = stuck(TestHub.ready())
    bench.run(1000)
    bench.restart()
    bench.run(12_000)
    expect(trouble(bench)).toMatchObject([{ subject: 'door main', raised: true }])
    expect(bench.logged('error').filter((line) => line.includes('cannot be locked'))).toHaveLength(1)
  })

  test('a lock is no alarm if its line can be driven again in time', () => {
    const bench = stuck(TestHub.ready())
    bench.run(9000)
    bench.stuckLines.clear()
    bench.run(60_000)
    expect(trouble(bench)).toEqual([])
  })
})

test('a contact that cannot be read is an alarm of its door, and its door is unknown', () => {
  const bench = TestHub.ready()
  bench.blindLines.add('fridge_1_left_door')
  bench.run(80_000)
  expect(door(bench, 'fridge_1_left')).toBe('unknown')
  expect(bench.entries('alarm')).toMatchObject([
    { code: 'door_left_open', subject: 'door fridge_1_left', detail: 'its contact cannot be read' },
  ])
  bench.blindLines.clear()
  bench.run(3000)
  expect(door(bench, 'fridge_1_left')).toBe('locked')
  expect(bench.entries('alarm').at(-1)).toMatchObject({ code: 'door_left_open', raised: false })
})

describe('an unsettled contact', () => {
  test.each([
    ['open 83 % of the time, 5 ms closed in each 30 ms', 25, 5],
    ['open and closed for 250 ms each', 250, 250],
    ['open and closed for a second each', 1000, 1000],
    ['closed most of the time', 20, 400],
  ])('a contact that is %s, is unknown, with one alarm', (_, openMs, closedMs) => {
    const bench = TestHub.ready()
    const before = bench.ledger().length
    const seen = new Set<string | undefined>()
    for (let past = 0; past < 60_000; past += openMs + closedMs) {
      bench.room.gpio.set('main_door', 1)
      bench.run(openMs)
      bench.room.gpio.set('main_door', 0)
      bench.run(closedMs)
      if (past > 10_000) seen.add(door(bench, 'main'))
    }
    expect(seen).toEqual(new Set(['unknown']))
    expect(bench.entries('alarm')).toMatchObject([
      { code: 'door_left_open', subject: 'door main', raised: true, detail: 'its contact does not settle' },
    ])
    expect(bench.ledger().length - before).toBe(1)
    bench.run(130_000)
    expect(door(bench, 'main')).toBe('locked')
    expect(bench.entries('alarm').at(-1)).toMatchObject({ code: 'door_left_open', raised: false })
  })

  test('a contact is read at most half a second after its first edge', () => {
    const bench = TestHub.ready()
    let reads = 0
    const { gpio } = bench.room
    const read = (): boolean => bench.core.health().doors.some(({ status }) => status === 'open')
    bench.core.unlockDoor('main', 60_000)
    for (let past = 0; past < 700; past += 30) {
      gpio.set('main_door', 1)
      bench.run(25)
      gpio.set('main_door', 0)
      bench.run(5)
      reads += read() ? 1 : 0
    }
    // Stable changes are still reported, but no flicker.
    expect(reads).toBe(0)
    gpio.set('main_door', 1)
    bench.run(2600)
    expect(door(bench, 'main')).toBe('open')
  })
})

describe('silent controllers', () => {
  const silent = (bench: TestHub) => bench.entries('alarm').filter(({ code }) => code === 'controller_silent')

  test('a silent controller is an alarm exactly after the configured time, with the reason', () => {
    const bench = TestHub.ready()
    bench.settings = { ...bench.settings, silentAlarmMs: 20_000 }
    bench.restart()
    bench.run(40_000)
    bench.fault('silent_port', 'bins')
    bench.run(22_000)
    expect(silent(bench)).toEqual([])
    bench.run(3000)
    expect(silent(bench)).toMatchObject([
      { subject: 'controller bins', detail: expect.stringMatching(/silent|HELLO/) as string },
    ])
  })

  test('a controller that answers before its alarm raises none later', () => {
    const bench = TestHub.ready()
    bench.run(40_000)
    const fault = bench.fault('silent_port', 'bins')
    bench.run(55_000)
    bench.room.faults.clear(fault)
    bench.run(300_000)
    expect(silent(bench)).toEqual([])
  })
})

test('a machine without GPIO lines is an alarm at once, with the missing requirement', () => {
  const bench = new TestHub()
  bench.hasLines = false
  bench.linesProblem = { reason: 'this kernel has no /sys/class/gpio: CONFIG_GPIO_SYSFS', isFinal: true }
  bench.begin()
  bench.apply(bench.snapshot())
  bench.run(2000)
  expect(bench.entries('alarm')).toMatchObject([
    { code: 'controller_silent', subject: 'controller gpio', detail: bench.linesProblem.reason },
  ])
})
