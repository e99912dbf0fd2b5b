import { describe, expect, test } from 'vitest'
import { connectionProblem } from '../../../protocol/mqtt/connection-problem.ts'
import { uuid } from '../../support/uuid.ts'
import { setUp } from './set-up.ts'

const DAY = 86_400_000

describe('a session', () => {
  test('a session starts with its will, presence, hello and a heartbeat, and ends with a goodbye', () => {
    const { clock, line, cloud, start } = setUp()
    const hub = start()
    expect(hub.sync.state()).toMatchObject({ phase: 'connecting', receivedMsAgo: null })
    clock.advance(10)
    const { session } = cloud.hellos[0]!
    expect(cloud.presences).toEqual([JSON.stringify({ session, online: true })])
    expect(cloud.heartbeats).toMatchObject([{ session, health: { accepting_orders: true } }])
    expect(hub.sync.state()).toMatchObject({ phase: 'welcomed', session })
    hub.sync.stop()
    clock.advance(60_000)
    expect(cloud.presences[1]).toBe(JSON.stringify({ session, online: false, goodbye: true }))
    expect(hub.sync.state().phase).toBe('stopped')
    expect(line.connections).toBe(1)
    expect(clock.pending).toBe(0)
  })

  test('a session has its own id on every connection, and its will names it', () => {
    const { clock, line, cloud, start } = setUp()
    start()
    clock.advance(10)
    line.cut()
    clock.advance(1000)
    expect(cloud.hellos[1]!.session).not.toBe(cloud.hellos[0]!.session)
    expect(line.wills).toEqual([JSON.stringify({ session: cloud.hellos[0]!.session, online: false })])
  })

  test('a session names the life of the service, which changes only with a restart', () => {
    const { clock, line, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    line.cut()
    clock.advance(1000)
    hub.sync.stop()
    start()
    clock.advance(10)
    const lives = cloud.hellos.map(({ instance }) => instance)
    expect(lives[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(new Set(lives).size).toBe(2)
    expect(lives.slice(0, 2)).toEqual([lives[0], lives[0]])
  })

  test('a login that the broker refuses is reported in words, as a wrong number or password', () => {
    const { clock, line, start } = setUp()
    const hub = start()
    clock.advance(10)
    expect(hub.warnings).toEqual([])
    line.cut('Connection refused: Not authorized')
    expect(hub.warnings).toEqual([
      "the broker lets no hub-1 in with this password: MQTT_PASSWORD is not its own, or hubId of HARDWARE is not this hub's number",
    ])
  })

  test.each([
    ['has expired', { ends: -DAY, proven: 0 }, /: it expired on \d{4}-\d\d-\d\d($|: enrol)/],
    ['is valid', { ends: DAY, proven: 0 }, /: it is revoked, or the hub is not hub-1 \(it ends on [-\d]+\)/],
    [
      'has expired by a wrong clock alone',
      { ends: -DAY, proven: -9 * DAY },
      /: it expired on [-\d]+ if the clock of this board shows [-\d]+ rightly; otherwise it is revoked/,
    ],
    [
      'has expired on a board with an old clock',
      { ends: DAY, proven: 2 * DAY },
      /: it expired on \d{4}-\d\d-\d\d($|: enrol)/,
    ],
    [
      'is valid on a board with an old clock',
      { ends: 9 * DAY, proven: DAY },
      /: it is revoked, .* and the clock of this board shows [-\d]+, which is wrong/,
    ],
  ])(
    'a refused login with a certificate that %s names the certificate, not the password',
    (_, { ends, proven }, words) => {
      const { clock, line, start } = setUp()
      const hub = start()
      hub.certificate = { endsAt: clock.now() + ends }
      hub.provenTime = clock.now() + proven
      clock.advance(10)
      line.up = false
      line.cut('Connection refused: Not authorized')
      expect(hub.warnings).toEqual([expect.stringMatching(words)])
      expect(hub.warnings.join()).not.toContain('MQTT_PASSWORD')
      expect(hub.sync.state().reason).toMatch(words)
    },
  )

  test.each([
    ['getaddrinfo ENOTFOUND broker.example', { code: 'ENOTFOUND', hostname: 'broker.example' }, /DNS/],
    ['connect', { code: 'ECONNREFUSED', address: '::1', port: 8883 }, /::1 port 8883 refuses connections/],
    ['Connection refused: Bad username or password', {}, /refuses this user name or password/],
  ])(
    'a connection that fails by %s is one warning, and a reason in the state until the cloud answers',
    (message, fields, words) => {
      const { clock, line, start } = setUp()
      line.reason = connectionProblem(Object.assign(new Error(message), fields))
      line.up = false
      const hub = start()
      clock.advance(60_000)
      expect(hub.warnings).toHaveLength(1)
      expect(hub.sync.state()).toMatchObject({
        phase: 'waiting',
        reason: expect.stringMatching(words) as string,
      })
      line.up = true
      clock.advance(60_000)
      expect(hub.sync.state().phase).toBe('welcomed')
      expect(hub.sync.state()).not.toHaveProperty('reason')
      expect(hub.warnings).toHaveLength(1)
    },
  )

  test('a session that the cloud does not answer has a reason after 10 s', () => {
    const { clock, cloud, start } = setUp()
    cloud.answersHello = false
    const hub = start()
    clock.advance(9_000)
    expect(hub.sync.state()).not.toHaveProperty('reason')
    clock.advance(2_000)
    expect(hub.sync.state().reason).toMatch(/the broker is connected, but the cloud does not answer/)
  })

  test('a session is reopened without an attempt limit, with a back-off that a welcome resets', () => {
    const { clock, line, start } = setUp()
    const hub = start()
    line.up = false
    clock.advance(10)
    expect(hub.sync.state().phase).toBe('waiting')
    clock.advance(24 * 3600_000)
    line.up = true
    clock.advance(30_000)
    expect(hub.sync.state().phase).toBe('welcomed')
    line.cut()
    clock.advance(510)
    expect(line.connections).toBe(2)
  })

  test('a session repeats its hello with growing pauses until a welcome to this session comes', () => {
    const { clock, cloud, start } = setUp()
    cloud.answersHello = false
    const hub = start()
    clock.advance(300_000)
    expect(new Set(cloud.hellos.map((hello) => hello.session))).toEqual(new Set([cloud.session]))
    const times = cloud.hellos.map((hello) => hello.clock.monotonic)
    const pauses = times.slice(1).map((time, index) => time - times[index]!)
    for (const [index, pause] of pauses.entries()) {
      const ceiling = Math.min(30_000, 3000 * 2 ** index)
      expect(pause).toBeGreaterThanOrEqual(ceiling / 2)
      expect(pause).toBeLessThanOrEqual(ceiling)
    }
    // Half of each pause is random, so that hubs that connected together spread.
    expect(new Set(pauses).size).toBe(pauses.length)
    cloud.send('welcome', cloud.welcome({ session: 'f'.repeat(32) }))
    cloud.send('welcome', cloud.welcome({ answers: -1 }))
    cloud.send('welcome', cloud.welcome({ protocol: 99 }))
    clock.advance(10)
    expect(hub.sync.state().phase).toBe('greeting')
    cloud.answersHello = true
    clock.advance(30_000)
    expect(hub.sync.state().phase).toBe('welcomed')
    const count = cloud.hellos.length
    clock.advance(30_000)
    expect(cloud.hellos).toHaveLength(count)
  })

  test('an unwelcomed session accepts a welcome to any of its hellos, because an answer may need longer than the next hello', () => {
    const { clock, line, cloud, start, details } = setUp()
    line.weather = { copies: () => 1, delayMs: () => 4000 }
    const hub = start()
    hub.report('a')
    clock.advance(8100)
    expect(hub.sync.state().phase).toBe('welcomed')
    clock.advance(10_000)
    const count = cloud.hellos.length
    expect(count).toBeGreaterThan(1)
    clock.advance(30_000)
    expect([cloud.hellos.length, details()]).toEqual([count, ['a']])
  })

  test('a welcome to a hello before a new epoch is ignored for that epoch', () => {
    const { clock, cloud, start, details } = setUp()
    cloud.answersHello = false
    const hub = start()
    clock.advance(10)
    const early = cloud.welcome()
    hub.report('a')
    hub.outbox.newEpoch('ledger')
    const { epoch } = hub.outbox.position('ledger')
    clock.advance(2000)
    cloud.send('welcome', early)
    clock.advance(10)
    expect(hub.sync.state().phase).toBe('greeting')
    cloud.answersHello = true
    clock.advance(10_000)
    expect([hub.outbox.position('ledger').epoch, details()]).toEqual([epoch, ['a']])
  })

  test('a hub sends no hello before the time that the cloud set, and then continues its back-off', () => {
    const { clock, cloud, start } = setUp()
    cloud.answersHello = false
    start()
    clock.advance(10)
    cloud.send('later', { session: 'f'.repeat(32), after_ms: 100_000 })
    clock.advance(2990)
    expect(cloud.hellos).toHaveLength(2)
    cloud.send('later', { session: cloud.session, after_ms: 40_000 })
    const told = clock.monotonic()
    clock.advance(39_900)
    expect(cloud.hellos).toHaveLength(2)
    clock.advance(4200)
    expect(cloud.hellos).toHaveLength(3)
    // A tenth of the pause is random, so that a thousand hubs with equal times do not return together.
    expect(cloud.hellos[2]!.clock.monotonic - told).toBeGreaterThan(40_000)
    cloud.send('later', { session: cloud.session, after_ms: 0 })
    clock.advance(990)
    expect(cloud.hellos).toHaveLength(3)
    clock.advance(200)
    expect(cloud.hellos).toHaveLength(4)
  })

  test('a session sends only hellos before it is welcomed', () => {
    const { clock, cloud, start } = setUp()
    cloud.answersHello = false
    const hub = start()
    hub.report('a')
    hub.changeHealth()
    clock.advance(60_000)
    expect([cloud.heartbeats, cloud.batches]).toEqual([[], []])
    cloud.answersHello = true
    clock.advance(40_000)
    expect(cloud.heartbeats.length).toBeGreaterThan(0)
  })

  test('a session answers a request for a hello at most once a second', () => {
    const { clock, cloud, start } = setUp()
    start()
    clock.advance(5000)
    for (let n = 0; n < 10; n++) cloud.send('hail', { session: null })
    clock.advance(500)
    expect(cloud.hellos).toHaveLength(2)
    cloud.send('hail', { session: null })
    clock.advance(300)
    expect(cloud.hellos).toHaveLength(2)
    clock.advance(500)
    expect(cloud.hellos).toHaveLength(3)
  })

  test('a session repeats its hello without a reconnect if the cloud does not acknowledge or is silent', () => {
    const { clock, line, cloud, start, details } = setUp()
    const hub = start()
    clock.advance(10)
    cloud.answersBatches = false
    hub.report('a')
    clock.advance(9900)
    expect([cloud.hellos.length, cloud.batches.length]).toEqual([1, 1])
    clock.advance(1000)
    expect([cloud.hellos.length, cloud.batches.length]).toEqual([2, 2])
    cloud.answersBatches = true
    clock.advance(40_000)
    expect(details()).toEqual(['a'])
    const count = cloud.hellos.length
    clock.advance(60_001)
    expect(cloud.hellos).toHaveLength(count + 1)
    expect(line.connections).toBe(1)
  })

  test('a session ignores invalid messages', () => {
    const { clock, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    for (const channel of ['welcome', 'entries', 'ack', 'command', 'hail'] as const)
      for (const payload of ['', '{', 'null', '[]', '{"epoch":1}', `"${'x'.repeat(1_100_000)}"`])
        cloud.send(channel, payload)
    clock.advance(10)
    expect(hub.warnings).toHaveLength(30)
    hub.report('a')
    clock.advance(50)
    expect(cloud.streams.ledger.applied).toHaveLength(1)
  })
})

describe('the heartbeat', () => {
  test('a heartbeat is sent every 15 s, plus or minus a tenth, and once half a second after changes of health', () => {
    const { clock, cloud, start } = setUp()
    const hub = start()
    clock.advance(600_000)
    const times = cloud.heartbeats.map(({ monotonic }) => monotonic)
    const pauses = times.slice(1).map((time, index) => time - times[index]!)
    for (const pause of pauses) expect(Math.abs(pause - 15_000)).toBeLessThan(1501)
    expect(new Set(pauses).size).toBeGreaterThan(pauses.length / 2)
    const last = times.at(-1)!
    // Half a second without a due heartbeat.
    if (clock.monotonic() - last > 12_000) clock.advance(last + 17_000 - clock.monotonic())
    const count = cloud.heartbeats.length
    hub.changeHealth()
    const changed = clock.monotonic()
    clock.advance(400)
    hub.changeHealth()
    clock.advance(90)
    expect(cloud.heartbeats).toHaveLength(count)
    clock.advance(20)
    expect(cloud.heartbeats).toHaveLength(count + 1)
    expect(cloud.heartbeats.at(-1)!.monotonic).toBe(changed + 500)
  })
})

describe("the cloud's clock", () => {
  test('the cloud’s clock is the time in its welcome, continued by the monotonic clock for any wall clock', () => {
    const { clock, cloud, start } = setUp()
    clock.advance(5000)
    clock.shiftWall(-1e12)
    const hub = start()
    clock.advance(3)
    expect(hub.offsets).toEqual([cloud.wallMs - 5003])
  })

  test('the cloud’s time is adopted with every batch, before its entries, and with every acknowledgement', () => {
    const { clock, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    // The cloud's clock was two days ahead, and is corrected during the session.
    cloud.wallMs -= 2 * 24 * 3_600_000
    cloud.enqueue({ kind: 'order.cancel', order_id: uuid(1) })
    clock.advance(10)
    hub.report('something')
    clock.advance(50)
    const heard = hub.heard.map((offset) => Math.round((cloud.wallMs - offset) / 1000))
    expect([hub.offsets.length, heard]).toEqual([1, [0, 0]])
    expect(hub.order.slice(0, 2)).toEqual(['clock', 'entry'])
  })
})

describe('I2: a command', () => {
  test('a command is executed within its session and time, and its result is published', () => {
    const { clock, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    const id = cloud.command()
    clock.advance(10)
    expect(hub.executed).toEqual([id])
    expect(cloud.results).toMatchObject([{ command_id: id, outcome: 'executed', session: cloud.session }])
  })

  test('a command of another session is refused', () => {
    const { clock, line, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    const { session } = cloud
    line.cut()
    clock.advance(1000)
    const id = cloud.command({ session })
    clock.advance(10)
    expect(hub.executed).toEqual([])
    expect(cloud.results).toMatchObject([
      { command_id: id, outcome: 'refused', reason: 'stale_session', data: null },
    ])
  })

  test('a command past its time on the hub’s monotonic clock is refused, for any wall clock', () => {
    const { clock, cloud, start } = setUp()
    const hub = start()
    clock.advance(10)
    clock.shiftWall(-3600_000)
    const late = cloud.command({ expires_monotonic: 10 })
    clock.advance(10)
    clock.shiftWall(7200_000)
    const timely = cloud.command()
    clock.advance(10)
    expect(cloud.results.map(({ command_id, reason }) => [command_id, reason])).toEqual([
      [late, 'expired'],
      [timely, null],
    ])
    expect(hub.executed).toEqual([timely])
  })
})
