import { describe, expect, test } from 'vitest'
import { openRoom } from '../../world/room.ts'
import { operation, TestHost } from '../../world/room-host.ts'

describe('a session of the serial protocol (SPEC §4, §5)', () => {
  test('WELCOME repeats the host session, then every device reports its sensors, in order', () => {
    const { host } = openRoom()
    expect(host.received.map(({ type }) => type)).toEqual(['ACK', 'WELCOME', 'EVT', 'EVT', 'EVT'])
    expect(host.last('WELCOME')).toMatchObject({ proto: 3, host: host.host, count: 0 })
    expect(host.of('EVT').map((event) => ({ ...event, seq: 0 }))).toEqual([
      { seq: 0, type: 'EVT', ev: 1, dev: 'bin-1', door: 'closed', lift: 'down', occ: false },
      { seq: 0, type: 'EVT', ev: 2, dev: 'bin-2', door: 'closed', lift: 'down', occ: false },
      { seq: 0, type: 'EVT', ev: 3, dev: 'cabinet-1' },
    ])
  })

  test('the controller reports nothing before WELCOME is acknowledged, and repeats WELCOME after 25 ms, doubling to 400', () => {
    const { hub, clock, host: former } = openRoom()
    former.close()
    const host = new TestHost(hub, 'front', clock, { host: 'aaaaaaaa' })
    host.acknowledges = false
    clock.advance(1)
    const start = clock.monotonic()
    host.hello()
    const arrivals: number[] = []
    for (let ms = 0; ms < 2000; ms++) {
      clock.advance(1)
      if (host.of('WELCOME').length > arrivals.length) arrivals.push(clock.monotonic() - start - 2)
    }
    expect(arrivals).toEqual([0, 25, 75, 175, 375, 775, 1175, 1575, 1975])
    expect(new Set(host.of('WELCOME').map(({ seq }) => seq)).size).toBe(1)
    expect(host.of('EVT')).toEqual([])
  })

  test('PONG answers PING with its t, but a PING without a session gets no answer', () => {
    const { host, hub, clock } = openRoom()
    host.send({ type: 'PING', t: 4711 })
    clock.advance(10)
    expect(host.last('PONG')).toMatchObject({ t: 4711 })
    const stranger = new TestHost(hub, 'back', clock)
    clock.advance(1)
    stranger.send({ type: 'PING', t: 1 })
    stranger.query(operation(1))
    clock.advance(10)
    expect(stranger.received).toEqual([expect.objectContaining({ type: 'NAK', why: 'stale_host' })])
  })

  test('a HELLO of another session ends the former session: its command is refused and moves nothing', () => {
    const bench = openRoom()
    const former = bench.host
    const late = former.command({ op: operation(1), dev: 'bin-1', act: 'open_door' })
    // The buffered command arrives again after the new session has started.
    bench.clock.advance(3000)
    bench.reconnect()
    bench.host.command({ op: operation(2), dev: 'bin-1', act: 'close_door' })
    bench.clock.advance(3000)
    const before = bench.hub.actuations().length
    bench.host.sendLine(late)
    bench.host.command({ op: operation(3), dev: 'bin-1', act: 'open_door', host: former.host })
    bench.clock.advance(3000)
    expect(bench.host.last('NAK')?.why).toBe('stale_host')
    expect(bench.hub.actuations()).toHaveLength(before)
  })

  test('a repeated HELLO with the same session starts no new session', () => {
    const { host, clock } = openRoom()
    const events = host.of('EVT').length
    host.hello(host.host)
    clock.advance(1000)
    expect(host.of('EVT')).toHaveLength(events)
    expect(host.of('WELCOME')).toHaveLength(1)
    expect(host.of('ACK')).toHaveLength(2)
  })

  test('a host of another version gets the controller’s version and no session', () => {
    const { hub, clock, host: former } = openRoom()
    former.close()
    const host = new TestHost(hub, 'front', clock, { host: 'bbbbbbbb' })
    clock.advance(1)
    host.send({ type: 'HELLO', proto: 4, host: 'bbbbbbbb' })
    clock.advance(5)
    expect(host.last('WELCOME')).toMatchObject({ proto: 3, host: 'bbbbbbbb' })
    host.command({ op: operation(1), dev: 'bin-1', act: 'open_door' })
    clock.advance(5)
    expect(host.last('NAK')?.why).toBe('stale_host')
  })

  test('a host of version 2 gets a session of its version, in which every probe has a reading', () => {
    const { hub, clock } = openRoom()
    const host = new TestHost(hub, 'back', clock, { host: 'cccccccc' })
    clock.advance(1)
    host.hello('cccccccc', 2)
    clock.advance(100)
    expect(host.last('WELCOME')).toMatchObject({ proto: 2, host: 'cccccccc' })
    hub.faults.raise({ type: 'broken_probe', target: 'fridge-1' })
    clock.advance(120_000)
    const events = host.of('EVT').filter(({ dev }) => dev === 'fridge-1')
    expect(events.length).toBeGreaterThan(3)
    expect(events.some(({ temp }) => temp === 'none')).toBe(false)
    expect(events.at(-1)!.temp).toBeUndefined()
  })

  test('a host that is silent for 5 s has lost its session, and the controller sends it nothing', () => {
    const { host, hub, clock } = openRoom()
    clock.advance(4000)
    host.pings = false
    host.send({ type: 'PING', t: 1 })
    clock.advance(4900)
    expect(hub.controllers.get('front')!.hasSession).toBe(true)
    clock.advance(200)
    expect(hub.controllers.get('front')!.hasSession).toBe(false)
    const count = host.received.length
    hub.faults.raise({ type: 'door_forced', target: 'bin-1' })
    clock.advance(60_000)
    expect(host.received).toHaveLength(count)
  })

  test('a controller that starts reports it once, with another boot id', () => {
    const { host, hub, clock } = openRoom()
    const { boot, mem } = host.last('WELCOME')!
    hub.faults.raise({ type: 'brown_out', target: 'front', for_ms: 500 })
    clock.advance(5000)
    const again = host.of('WELCOME').slice(1)
    expect(again).toHaveLength(1)
    expect(again[0]).toMatchObject({ host: '00000000', mem })
    expect(again[0]!.boot).not.toBe(boot)
  })

  test('a whole frame that is not understood is refused, so that the host does not repeat it', () => {
    const { host, clock } = openRoom()
    host.sendLine('~0001 PING t=5 u=6*a9f1')
    clock.advance(10)
    expect(host.of('NAK')).toEqual([])
    host.sendLine('~0001 PING t=5 u=6*' + crcOf('~0001 PING t=5 u=6'))
    host.sendLine('~0002 FLY t=5*' + crcOf('~0002 FLY t=5'))
    clock.advance(10)
    expect(host.of('NAK')).toEqual([
      expect.objectContaining({ s: 1, why: 'bad_argument' }),
      expect.objectContaining({ s: 2, why: 'unsupported' }),
    ])
  })

  test('the controller sends one event at a time; the next one waits for the acknowledgement and has the state of that moment', () => {
    const { host, hub, clock } = openRoom()
    host.acknowledges = false
    hub.faults.raise({ type: 'door_forced', target: 'bin-1' })
    hub.act({ action: 'close_door', target: 'bin-1' })
    hub.faults.raise({ type: 'door_forced', target: 'bin-2' })
    clock.advance(1000)
    const numbers = (): number[] => [...new Set(host.of('EVT').map(({ ev }) => ev))]
    expect(numbers()).toEqual([1, 2, 3, 4])
    host.acknowledges = true
    clock.advance(1000)
    const later = host.of('EVT').filter(({ ev }) => ev > 4)
    expect(later.map(({ dev, door }) => [dev, door])).toEqual([
      ['bin-1', 'closed'],
      ['bin-2', 'open'],
    ])
  })
})

function crcOf(text: string): string {
  let crc = 0xffff
  for (const char of text) {
    crc ^= char.charCodeAt(0) << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc.toString(16).padStart(4, '0')
}
