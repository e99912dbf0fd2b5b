import { expect, test } from 'vitest'
import { HubBench } from './hub-bench.ts'

const door = (bench: HubBench, name: string): string | undefined =>
  bench.core.health().doors.find((each) => each.door === name)?.status

test('a door is unlocked for a bounded time, and locked again', () => {
  const bench = HubBench.ready()
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

test('a lock that an earlier life left open is locked at the start, and no other line is driven', () => {
  const bench = HubBench.ready()
  bench.core.unlockDoor('fridge_1_left', 60_000)
  bench.kill()
  expect(bench.room.gpio.get('fridge_1_left_lock')).toBe(1)
  bench.begin()
  expect(bench.room.gpio.get('fridge_1_left_lock')).toBe(0)
})

test('a stop locks everything', () => {
  const bench = HubBench.ready()
  bench.core.unlockDoor('main', 60_000)
  bench.core.stop()
  expect(bench.room.gpio.get('main_lock')).toBe(0)
})

test('a door that opens while it is locked is an alarm, once, until it is closed; one that was unlocked is none', () => {
  const bench = HubBench.ready()
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
  // One that closes and opens soon must hold for longer.
  bench.run(5000)
  expect(bench.entries('alarm').at(-1)).toMatchObject({ code: 'door_forced', raised: false })
})

test.each(['over a restart', 'while its line could not be read'] as const)(
  'a door that was opened rightly and locked meanwhile is no alarm: it has stood open %s',
  (how) => {
    const bench = HubBench.ready()
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

test('a door that was closed when the hub went away, and is open when it comes back, is an alarm', () => {
  const bench = HubBench.ready()
  bench.kill()
  bench.fault('door_forced', 'main')
  bench.begin()
  bench.run(2000)
  expect(bench.entries('alarm')).toMatchObject([{ code: 'door_forced', subject: 'door main', raised: true }])
})

test('a controller that stays away is an alarm, and over when it has returned and stays', () => {
  const bench = HubBench.ready()
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

test('what is taken out of the hardware is an alarm no more, and what stays is', () => {
  const bench = HubBench.ready()
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

test('a device that belongs on another line is not heard there: an alarm until its controller comes up anew', () => {
  const bench = HubBench.ready()
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

test('lines that nobody can read for a minute are an alarm, as any silent controller is, until they can be', () => {
  const bench = HubBench.ready()
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

test('a door that nobody closes is an alarm until somebody does', () => {
  const bench = HubBench.ready()
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
