import { deviceId } from '../../../protocol/model/hardware.ts'
import { crc16 } from '../../../protocol/serial/codec.ts'
import { SERIAL_PROTOCOL_VERSION } from '../../../protocol/serial/frames.ts'
import type { Bench, Rule } from '../bench.ts'
import { expect, type Host } from '../host.ts'

const QUIET_MS = 700
/** Within this time the frames of a new session are acknowledged, however busy the host is. */
const SETTLED_MS = 10_000
const SILENT_MS = 5000

/** A line with a valid checksum around any text. */
const lineOf = (text: string): string => `${text}*${crc16(text).toString(16).padStart(4, '0')}`

/** Checks that a PING is answered: the board has read everything before it, and reads lines correctly again. */
async function answersPing(host: Host, after: string): Promise<void> {
  const from = host.heard.length
  const t = Math.floor(host.now * 7) % 1e9
  for (let attempt = 0; attempt < 3; attempt++) {
    host.send({ type: 'PING', t })
    if (await host.until(() => host.of('PONG', from).some((pong) => pong.t === t), 500)) return
  }
  expect(false, `PING must be answered with PONG and the same t ${after}; it was not`)
}

/** A possible motion: of a bin's door, or a turn. */
async function someMotion(bench: Bench) {
  const { host } = bench
  await bench.fresh()
  const [bin] = bench.devices('bin')
  const motion = bin
    ? { dev: deviceId(bin), act: 'open_door' as const }
    : { dev: bench.device('cabinet'), act: 'dispense' as const, ...bench.place() }
  return host.command({ op: host.newOperation(), ...motion })
}

export const sessionRules: readonly Rule[] = [
  {
    number: 1,
    title: 'a line with a wrong checksum is dropped without an answer and moves nothing',
    async prove(bench) {
      const { host } = bench
      const body = await someMotion(bench)
      const { seq, line } = host.frame(body)
      const from = host.heard.length
      const [last] = line.slice(-1)
      host.sendLine(line.slice(0, -1) + (last === '0' ? '1' : '0'))
      host.sendLine(line.replace('dev=', 'dew='))
      await host.pass(QUIET_MS)
      const answer = host.answerTo(seq, from)
      expect(!answer, `a damaged CMD must not be answered; it was answered with ${answer?.type}`)
      const { state } = await host.query((body as { op: string }).op)
      expect(state === 'none', `a damaged CMD must not be carried out; its operation is ${state}`)
    },
  },
  {
    number: 2,
    title:
      'after noise, lines that are too long or carriage returns, the controller reads correctly from the next line feed on',
    async prove(bench) {
      const { host } = bench
      await bench.fresh()
      for (const noise of ['', 'x'.repeat(300), '~', '~0001 PING t=1', 'é'.repeat(100), '\u0000\u0001~~~'])
        host.sendLine(noise)
      await answersPing(host, 'after noise')
      const from = host.heard.length
      const t = 424_242
      host.sendLine(`noise${host.frame({ type: 'PING', t }).line}`)
      host.sendLine(`${host.frame({ type: 'PING', t }).line}${' '.repeat(300)}`)
      await host.pass(QUIET_MS)
      expect(
        !host.of('PONG', from).some((pong) => pong.t === t),
        'a frame with noise on its line must be dropped',
      )
      host.sendLine(`${host.frame({ type: 'PING', t }).line}\r`)
      await host.until(() => host.of('PONG', from).some((pong) => pong.t === t), 500)
      expect(
        host.of('PONG', from).some((pong) => pong.t === t),
        'one CR before the LF must be tolerated',
      )
    },
  },
  {
    number: 3,
    title:
      'a whole line that the controller does not understand is answered with NAK: unsupported, bad_argument',
    async prove(bench) {
      const { host } = bench
      await bench.fresh()
      const op = host.newOperation()
      const cases = [
        ['FLY t=5', 'unsupported', 'an unknown type'],
        ['PING t=5 u=6', 'bad_argument', 'an unknown field'],
        ['PING', 'bad_argument', 'a missing field'],
        ['LST n=257', 'bad_argument', 'a value out of its range'],
        [`QRY op=${op} op=${op}`, 'bad_argument', 'a field that stands twice'],
        [`CMD host=${host.session} op=${op} dev=bin-1 act=dance max=100`, 'bad_argument', 'an unknown act'],
      ] as const
      for (const [text, why, what] of cases) {
        const { seq, line } = host.frame({ type: 'PING', t: 0 })
        const from = host.heard.length
        host.sendLine(lineOf(`${line.slice(0, 5)} ${text}`))
        await host.until(() => host.answerTo(seq, from) !== undefined, 1000)
        const answer = host.answerTo(seq, from)
        const seen = answer ? (answer.type === 'NAK' ? `NAK why=${answer.why}` : answer.type) : 'no answer'
        expect(seen === `NAK why=${why}`, `${what} must be answered with NAK why=${why}; there was ${seen}`)
      }
    },
  },
  {
    number: 4,
    title:
      'HELLO begins a session: WELCOME, then one EVT for every device of the board; the same HELLO again begins none',
    async prove(bench) {
      const { host } = bench
      await bench.fresh()
      const from = host.heard.length
      const welcome = await host.greet()
      expect(
        welcome.proto === SERIAL_PROTOCOL_VERSION,
        `WELCOME must have proto=${SERIAL_PROTOCOL_VERSION}; it has ${welcome.proto}`,
      )
      const devices = bench.description.devices.map(deviceId)
      const reporting = await bench.reports()
      const missing = devices.filter((device) => !reporting.includes(device))
      expect(
        missing.length === 0,
        `every device must send its EVT after WELCOME; missing: ${missing.join(', ')}`,
      )
      const foreign = reporting.filter((device) => !devices.includes(device))
      expect(foreign.length === 0, `the hardware description has no ${foreign.join(', ')} on this controller`)
      const ordered = reporting.join(' ')
      expect(
        ordered === devices.join(' '),
        `EVTs must come in the order of the devices; they came as ${ordered}`,
      )
      // A fridge may report its temperature at any time.
      const begun = (since: number) => [
        ...host.of('WELCOME', since),
        ...host.of('EVT', since).filter(({ temp }) => temp === undefined),
      ]
      // Acknowledgements that arrive late, as on a busy host, let the board repeat its frames (SPEC §4).
      let again = from
      for (const end = host.now + SETTLED_MS; begun(again).length > 0 && host.now < end;) {
        again = host.heard.length
        await host.pass(QUIET_MS)
      }
      again = host.heard.length
      await host.ask({ type: 'HELLO', proto: SERIAL_PROTOCOL_VERSION, host: host.session })
      await host.pass(QUIET_MS)
      expect(
        begun(again).length === 0,
        'HELLO with the same session is a repetition: an acknowledged WELCOME and the EVTs must not come again',
      )
      await answersPing(host, 'in a session')
    },
  },
  {
    number: 5,
    title:
      'a frame is repeated unchanged, from 25 ms up to every 400 ms, until it is acknowledged and not afterwards',
    async prove(bench) {
      const { host } = bench
      await bench.fresh()
      await host.pass(QUIET_MS)
      host.acknowledges = ({ type }) => type !== 'RES'
      const op = host.newOperation()
      const from = host.heard.length
      await host.ask({ type: 'QRY', op })
      await host.pass(2500)
      const copies = host.heard.slice(from).filter(({ frame }) => frame?.type === 'RES' && frame.op === op)
      expect(
        copies.length >= 5,
        `an unacknowledged RES must be repeated; it came ${copies.length} times in 2.5 s`,
      )
      expect(
        copies.length <= 16,
        `a RES must not be repeated more often than SPEC §4 allows; it came ${copies.length} times`,
      )
      expect(
        new Set(copies.map(({ line }) => line)).size === 1,
        'a repetition must be the same line, byte for byte',
      )
      const pauses = copies.slice(1).map(({ at }, index) => at - copies[index]!.at)
      expect(
        pauses.every((ms) => ms < 650),
        `RES must come at least every 400 ms; there was a pause of ${Math.round(Math.max(...pauses))} ms`,
      )
      const before = host.heard.length
      host.send({ type: 'ACK', s: copies[0]!.frame!.seq })
      await host.pass(100)
      const late = host.heard.length
      await host.pass(1500)
      expect(
        !host.of('RES', Math.max(late, before)).some((one) => one.op === op),
        'an acknowledged RES must not be repeated',
      )
    },
  },
  {
    number: 6,
    title:
      'at most eight frames are unacknowledged, at most one of them an EVT; END follows when every OPS is acknowledged',
    async prove(bench) {
      const { host } = bench
      await bench.fresh()
      // Operations that move nothing, if there is a bin: refused operations do not stay in memory.
      const [bin] = bench.devices('bin')
      if (bin) for (let n = 0; n < 12; n++) await bench.done(deviceId(bin), 'close_door')
      const few = Math.min(3, (await host.list(3)).operations.length)
      await host.pass(QUIET_MS)
      host.acknowledges = () => false
      const asked = host.heard.length
      await host.ask({ type: 'LST', n: 3 })
      await host.pass(1500)
      if (few > 0)
        expect(
          host.of('END', asked).length === 0,
          'END must wait until every OPS is acknowledged; it came before',
        )
      await host.greet()
      await host.pass(QUIET_MS)
      host.acknowledges = () => false
      const from = host.heard.length
      await host.accepted({ type: 'LST', n: 256 })
      await host.pass(2000)
      const seqs = new Set(host.of('OPS', from).map(({ seq }) => seq))
      expect(seqs.size <= 8, `at most eight frames may be under way; ${seqs.size} OPS came unacknowledged`)
      const events = new Set(host.of('EVT', from).map(({ seq }) => seq))
      expect(events.size <= 1, `at most one EVT may be under way; ${events.size} came unacknowledged`)
      // All at once: the events of the session wait for each other.
      const before = host.heard.length
      host.session = host.newId()
      host.acknowledges = ({ type }) => type === 'WELCOME'
      await host.ask({ type: 'HELLO', proto: SERIAL_PROTOCOL_VERSION, host: host.session })
      await host.pass(1500)
      const greeted = new Set(host.of('EVT', before).map(({ seq }) => seq))
      expect(greeted.size <= 1, `at most one EVT may be under way; ${greeted.size} came unacknowledged`)
    },
  },
  {
    number: 7,
    title: 'a command of a former session, or of none, is refused as stale_host and moves nothing',
    async prove(bench) {
      const { host } = bench
      const body = await someMotion(bench)
      const { op } = body as { op: string }
      await host.greet()
      const answer = await host.ask(body)
      expect(
        answer === 'stale_host',
        `a CMD of a former session must be answered with NAK why=stale_host; it was ${answer}`,
      )
      await host.pass(QUIET_MS)
      const { state } = await host.query(op)
      expect(state === 'none', `a CMD of a former session must move nothing; its operation is ${state}`)
    },
  },
  {
    number: 8,
    title:
      'after 5 s of silence of the host the session is over: the board sends nothing more and refuses commands as stale',
    async prove(bench) {
      const { host } = bench
      const body = await someMotion(bench)
      await host.pass(QUIET_MS)
      host.acknowledges = () => false
      await host.ask({ type: 'QRY', op: host.newOperation() })
      host.pings = false
      await host.pass(SILENT_MS + 700)
      const from = host.heard.length
      await host.pass(1500)
      const later = host.heard.length - from
      expect(later === 0, `after 5 s of silence nothing more may be sent; ${later} lines came`)
      const answer = await host.ask(body)
      expect(
        answer === 'stale_host',
        `a CMD after 5 s of silence must be answered with NAK why=stale_host; it was ${answer}`,
      )
      const query = await host.ask({ type: 'QRY', op: host.newOperation() })
      expect(
        query === 'stale_host',
        `QRY without a session must be answered with NAK why=stale_host; it was ${query}`,
      )
    },
  },
  {
    number: 9,
    title: 'a host of another version gets the board’s own version, and no session',
    async prove(bench) {
      const { host } = bench
      const body = await someMotion(bench)
      const from = host.heard.length
      const session = host.newId()
      await host.ask({ type: 'HELLO', proto: 99, host: session })
      await host.until(() => host.of('WELCOME', from).length > 0, 1000)
      const [welcome] = host.of('WELCOME', from)
      expect(
        welcome?.proto === SERIAL_PROTOCOL_VERSION,
        `HELLO proto=99 must be answered with WELCOME proto=${SERIAL_PROTOCOL_VERSION}; there was ${welcome ? `proto=${welcome.proto}` : 'none'}`,
      )
      const answer = await host.ask({ ...body, host: session } as typeof body)
      expect(
        answer === 'stale_host',
        `a host of another version must get no session; its CMD was answered with ${answer}`,
      )
    },
  },
]
