import { deviceId } from '../../../protocol/model/hardware.ts'
import { textOf, type Rule } from '../bench.ts'
import { expect, MOTION_MS, Unasked } from '../host.ts'

const REPETITIONS = 100
const SETTLE_MS = 1500

export const operationRules: readonly Rule[] = [
  {
    number: 10,
    title: `a CMD that is repeated ${REPETITIONS} times moves once, and each copy is answered`,
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      await bench.fresh()
      const op = host.newOperation()
      const { seq, line } = host.frame(host.command({ op, dev, act: 'open_door' }))
      const from = host.heard.length
      for (let copy = 0; copy < REPETITIONS; copy++) {
        host.sendLine(line)
        await host.pass(5)
      }
      const result = await host.ended(op, from)
      expect(result.state === 'done' && result.moved, `the door of ${dev} must open; it is ${textOf(result)}`)
      await host.pass(SETTLE_MS)
      const answers = host.of('ACK', from).filter(({ s }) => s === seq).length
      expect(
        answers >= REPETITIONS * 0.9,
        `each copy of a CMD must be acknowledged; of ${REPETITIONS} ${answers} were`,
      )
      await bench.done(dev, 'close_door')
      const before = host.heard.length
      host.sendLine(line)
      host.sendLine(host.frame(host.command({ op, dev, act: 'open_door' })).line)
      const again = await host.ended(op, before)
      await host.pass(SETTLE_MS)
      const { door } = host.sensed(dev, before)
      expect(
        door === undefined || door === 'closed',
        `a repeated operation must move nothing; the door of ${dev} is ${door}`,
      )
      const [was, is] = [textOf(result), textOf(again)]
      expect(
        was === is,
        `a repeated operation must be answered with what is stored, ${was}; the answer was ${is}`,
      )
    },
  },
  {
    number: 11,
    title: 'a CMD with a known operation id moves nothing, whatever the other fields contain',
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      await bench.fresh()
      const op = host.newOperation()
      const first = await host.perform({ op, dev, act: 'close_door' })
      const from = host.heard.length
      const second = await host.perform({ op, dev, act: 'open_door' })
      await host.pass(SETTLE_MS)
      expect(
        textOf(first) === textOf(second),
        `a known operation must be answered with what is stored, ${textOf(first)}; the answer was ${textOf(second)}`,
      )
      const { door } = host.sensed(dev, from)
      // An earlier event may arrive late: the report of a fridge was unacknowledged.
      expect(
        door === undefined || door === 'closed',
        `a known operation must move nothing; the door of ${dev} is ${door}`,
      )
    },
  },
  {
    number: 12,
    title: 'a device that is already in position: done, moved=0, ms=0',
    async prove(bench) {
      const dev = bench.device('bin')
      await bench.fresh()
      const result = await bench.done(dev, 'close_door')
      expect(
        !result.moved && result.ms === 0,
        `close_door of a closed door must be done with moved=0 ms=0; it is ${textOf(result)}`,
      )
    },
  },
  {
    number: 13,
    title: 'each motion ends done, with moved=1, and the events report the position',
    async prove(bench) {
      const { host } = bench
      bench.device('bin')
      await bench.fresh()
      for (const dev of bench.devices('bin').map(deviceId))
        for (const [act, part, goal] of [
          ['open_door', 'door', 'open'],
          ['close_door', 'door', 'closed'],
          ['raise_lift', 'lift', 'up'],
          ['lower_lift', 'lift', 'down'],
        ] as const) {
          const from = host.heard.length
          const result = await bench.done(dev, act)
          expect(result.moved, `${act} of ${dev} must say moved=1; it is ${textOf(result)}`)
          await host.until(() => host.sensed(dev, from)[part] === goal, 3000)
          const seen = host.sensed(dev, from)[part]
          expect(
            seen === goal,
            `after ${act} the EVT of ${dev} must report ${part}=${goal}; it reports ${seen ?? 'nothing'}`,
          )
        }
    },
  },
  {
    number: 14,
    title: 'refusals: unknown_device, unsupported, bad_argument; the memory stores none of them',
    async prove(bench) {
      const { host } = bench
      await bench.fresh()
      const [bin] = bench.devices('bin').map(deviceId)
      const [cabinet] = bench.devices('cabinet').map(deviceId)
      const [fridge] = bench.devices('fridge').map(deviceId)
      const place = cabinet ? bench.place() : undefined
      const cases = [
        [
          { dev: bench.foreignDevice, act: 'open_door' as const },
          'unknown_device',
          'a device of another controller',
        ],
        bin && [
          { dev: bin, act: 'dispense' as const, shelf: 1, row: 1, bin: 1 },
          'unsupported',
          'dispense of a bin',
        ],
        bin && [{ dev: bin, act: 'open_door' as const, max: 0 }, 'bad_argument', 'max=0'],
        fridge && [{ dev: fridge, act: 'open_door' as const }, 'unsupported', 'a motion of a fridge'],
        cabinet && [{ dev: cabinet, act: 'open_door' as const }, 'unsupported', 'open_door of a cabinet'],
        cabinet && [{ dev: cabinet, act: 'dispense' as const }, 'bad_argument', 'dispense without a place'],
        cabinet && [
          { dev: cabinet, act: 'dispense' as const, ...place, row: 40 },
          'bad_argument',
          'a row that is not there',
        ],
      ].filter((one) => one !== undefined && one !== '') as [
        Parameters<typeof host.perform>[0],
        string,
        string,
      ][]
      for (const [fields, why, what] of cases) {
        const op = host.newOperation()
        const outcome = await host.perform({ ...fields, op })
        expect(outcome.refused === why, `${what} must be refused as ${why}; it was ${textOf(outcome)}`)
        const { state, moved } = await host.query(op)
        expect(
          state === 'none' && !moved,
          `a refused operation must not be in memory; QRY returns state=${state} moved=${Number(moved)}`,
        )
      }
    },
  },
  {
    number: 15,
    title: 'an operation that was refused is refused again in this session, even if it is possible by then',
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      await bench.fresh()
      await bench.done(dev, 'open_door')
      const op = host.newOperation()
      const command = { op, dev, act: 'raise_lift' as const }
      const first = await host.perform(command)
      await bench.done(dev, 'close_door')
      const from = host.heard.length
      const second = await host.perform(command)
      await host.pass(SETTLE_MS)
      expect(
        first.refused !== undefined && first.refused === second.refused,
        `an operation that was refused (${textOf(first)}) must be refused again; it was ${textOf(second)}`,
      )
      const { lift } = host.sensed(dev, from)
      expect(
        lift === undefined || lift === 'down',
        `a refused operation must move nothing; the lift of ${dev} is ${lift}`,
      )
    },
  },
  {
    number: 16,
    title: 'busy: a device runs one operation at a time, and a bin runs none while a dispense into it runs',
    async prove(bench) {
      const { host } = bench
      await bench.fresh()
      const [bin] = bench.devices('bin').map(deviceId)
      const [cabinet] = bench.devices('cabinet').map(deviceId)
      if (!bin && !cabinet) throw new Unasked('nothing moves on this controller')
      if (bin) {
        const { op, from } = await bench.started(bin, 'open_door')
        const second = await host.ask(host.command({ op: host.newOperation(), dev: bin, act: 'close_door' }))
        if (host.resultOf(op, from) === undefined)
          expect(second === 'busy', `a second operation of ${bin} must be refused as busy; it was ${second}`)
        await host.ended(op, from)
        await bench.fresh()
      }
      if (!cabinet) return
      const place = bench.place()
      const op = host.newOperation()
      const from = host.heard.length
      const answer = await host.ask(host.command({ op, dev: cabinet, act: 'dispense', ...place }))
      expect(answer === 'ok', `dispense of ${cabinet} must be carried out, and was refused: ${answer}`)
      const second = await host.ask(
        host.command({ op: host.newOperation(), dev: cabinet, act: 'dispense', ...bench.place() }),
      )
      if (host.resultOf(op, from) === undefined)
        expect(second === 'busy', `a second dispense of ${cabinet} must be refused as busy; it was ${second}`)
      if (bin) {
        const third = await host.ask(host.command({ op: host.newOperation(), dev: bin, act: 'open_door' }))
        if (host.resultOf(op, from) === undefined)
          expect(
            third === 'busy',
            `a motion of ${bin} while a unit may fall into it must be refused as busy; it was ${third}`,
          )
      }
      await host.ended(op, from)
    },
  },
  {
    number: 17,
    title: 'interlocks: no lift motion with the door open, no dispensing into a bin that is open or up',
    async prove(bench) {
      const dev = bench.device('bin')
      const [cabinet] = bench.devices('cabinet').map(deviceId)
      const refused = async (what: string, fields: Parameters<typeof bench.act>[2] = {}): Promise<void> => {
        const outcome =
          cabinet && what.startsWith('dispense')
            ? await bench.act(cabinet, 'dispense', { ...bench.place(), ...fields })
            : await bench.act(dev, 'raise_lift')
        expect(
          outcome.refused === 'interlock',
          `${what} must be refused as interlock; it was ${textOf(outcome)}`,
        )
      }
      await bench.fresh()
      await bench.done(dev, 'open_door')
      await refused('raise_lift with the door open')
      if (cabinet) await refused('dispense into an open bin')
      await bench.done(dev, 'close_door')
      await bench.done(dev, 'raise_lift')
      if (cabinet) await refused('dispense into a bin whose lift is up')
      await bench.done(dev, 'lower_lift')
    },
  },
  {
    number: 18,
    title: 'a motor never runs longer than max: failed, timeout, moved=1, whatever the host does',
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      await bench.fresh()
      const whole = await bench.done(dev, 'open_door')
      await bench.done(dev, 'close_door')
      const max = Math.round(whole.ms / 2)
      if (max < 10)
        throw new Unasked(`the door of ${dev} opens in ${whole.ms} ms: there is no time to stop it`)
      const { op, from } = await bench.started(dev, 'open_door', { max })
      // The host begins a new session during the motion, which must neither stop nor prolong it.
      await host.greet()
      await host.until(() => host.resultOf(op, from) !== undefined, whole.ms + 3000)
      const result = await host.query(op)
      expect(
        result.state === 'failed' && result.why === 'timeout' && result.moved,
        `a motion with max=${max}, half of what it takes, must end as failed timeout moved=1; it is ${textOf(result)}`,
      )
      const seen = host.sensed(dev, from).door
      expect(
        seen !== 'open' && seen !== 'moving',
        `the motor must be off after max; the door of ${dev} is ${seen}`,
      )
      expect(
        result.ms <= max + Math.max(50, max / 5),
        `max=${max} must end the motion; it lasted ${result.ms} ms`,
      )
    },
  },
  {
    number: 19,
    title: 'QRY of an operation whose RES was never acknowledged returns the same result in the next session',
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      await bench.fresh()
      host.acknowledges = ({ type }) => type !== 'RES'
      const { op, from } = await bench.started(dev, 'open_door')
      const first = await host.ended(op, from, MOTION_MS)
      await host.greet()
      const second = await host.query(op)
      expect(
        textOf(first) === textOf(second),
        `RES was ${textOf(first)}, and QRY returns ${textOf(second)} for the same operation`,
      )
    },
  },
  {
    number: 20,
    title: 'a dispense turns one row once: done, moved=1, and drops counts the falls that the sensor saw',
    async prove(bench) {
      const { host } = bench
      const cabinet = bench.device('cabinet')
      await bench.fresh()
      const place = bench.place()
      const op = host.newOperation()
      const outcome = await host.perform({ op, dev: cabinet, act: 'dispense', ref: '1041.2.0', ...place })
      expect(
        outcome.refused === undefined && outcome.moved,
        `dispense from a full row must turn it; it was ${textOf(outcome)}`,
      )
      const honest =
        outcome.state === 'done' ? outcome.drops >= 1 : outcome.state === 'failed' && outcome.drops === 0
      expect(honest, `done means drops>=1, and failed without a fall drops=0; it is ${textOf(outcome)}`)
      expect(
        outcome.state === 'done',
        `a unit must fall from shelf ${place.shelf}, row ${place.row}; it is ${textOf(outcome)}`,
      )
    },
  },
]
