import { deviceId } from '../../../protocol/model/hardware.ts'
import { type Bench, textOf, type Rule, type Power } from '../bench.ts'
import { Broken, expect, type Result, Unasked } from '../host.ts'

const CAPACITY = 256
const SETTLE_MS = 1500
const BOOT_MS = 10_000

function powerOf({ power }: Bench): Power {
  if (!power) throw new Unasked('the power cannot be cut: neither --relay nor --operator is given')
  return power
}

/** Cuts the power now, and switches it on again. */
export async function cutPower(bench: Bench): Promise<void> {
  await powerOf(bench).prepare('now')
  await powerOf(bench).off()
  await bench.host.pass(200)
  await comesBack(bench)
}

/** Switches the power on, and waits for the board. */
async function comesBack(bench: Bench): Promise<void> {
  const { host } = bench
  const from = host.heard.length
  await powerOf(bench).on()
  const boots = () => host.of('WELCOME', from).filter((welcome) => welcome.host === '00000000')
  await host.until(() => boots().length > 0 || !host.isOpen, BOOT_MS)
  const wasOpen = host.isOpen
  await host.pass(SETTLE_MS)
  if (wasOpen)
    expect(
      boots().length === 1,
      `a board that starts must send one WELCOME host=00000000; it sent ${boots().length}`,
    )
  else await host.open()
}

/** Cuts the power during a motion and switches it on again. Tries again if the motion had already ended. */
async function cutIn(
  bench: Bench,
  motion: () => Promise<{ op: string; from: number }>,
  afterMs: number,
): Promise<string> {
  const { host } = bench
  const power = powerOf(bench)
  let waitMs = afterMs
  for (let attempt = 0; attempt < 3; attempt++) {
    await bench.fresh()
    await power.prepare('as soon as something moves')
    const { op, from } = await motion()
    await host.pass(waitMs)
    const called = host.now
    await power.off()
    // A relay's command takes time: the next one is called earlier by that time.
    waitMs = Math.max(0, waitMs - (host.now - called))
    await host.pass(200)
    const ended = host.of('RES', from).some((result) => result.op === op && result.state !== 'running')
    await comesBack(bench)
    if (!ended) return op
  }
  throw new Unasked('the motion had ended before the power was off, three times')
}

export const memoryRules: readonly Rule[] = [
  {
    number: 21,
    title:
      'OWN: the owner is stored; wipe=1 formats the memory, the same owner again changes nothing, wipe=0 leaves the memory',
    async prove(bench) {
      const { host, description, hubId } = bench
      await bench.fresh()
      const before = await host.greet()
      const owner = { hub: hubId, ctl: description.id, store: host.newId() }
      const own = async (more: Partial<typeof owner>, wipe: boolean) => {
        await host.accepted({ type: 'OWN', ...owner, ...more, wipe })
        return host.greet()
      }
      const wiped = await own({}, true)
      expect(wiped.mem !== before.mem, 'OWN wipe=1 must format the memory: mem must be a new one')
      expect(wiped.count === 0, `OWN wipe=1 must empty the memory; WELCOME has count=${wiped.count}`)
      expect(
        wiped.hub === hubId && wiped.ctl === description.id && wiped.store === owner.store,
        `WELCOME must name the owner of the controller; it has hub=${wiped.hub} ctl=${wiped.ctl} store=${wiped.store}`,
      )
      const again = await own({}, true)
      expect(
        again.mem === wiped.mem,
        'OWN with the owner that is stored must do nothing; the memory was formatted again',
      )
      const other = await own({ store: host.newId() }, false)
      expect(
        other.mem === wiped.mem && other.store !== wiped.store,
        'OWN wipe=0 must keep the memory and take the new store',
      )
      const [bin] = bench.devices('bin').map(deviceId)
      if (!bin) return
      const { op, from } = await bench.started(bin, 'open_door')
      const answer = await host.ask({ type: 'OWN', ...owner, store: host.newId(), wipe: true })
      if (host.resultOf(op, from) === undefined)
        expect(answer === 'busy', `OWN wipe=1 while a device runs must be refused as busy; it was ${answer}`)
      await host.ended(op, from)
    },
  },
  {
    number: 22,
    title: 'LST returns the newest operations, oldest first, with all their fields; END returns their number',
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      await bench.fresh()
      const ops: string[] = []
      for (let n = 0; n < 3; n++) {
        await host.pass(3)
        ops.push(host.newOperation())
        await host.perform({ op: ops[n]!, dev, act: 'close_door', ref: `test.${n}` })
      }
      const { operations, end } = await host.list(2)
      const seen = operations.map(({ op, ref }) => `${ops.indexOf(op)}:${ref}`).join(' ')
      expect(end === 2, `LST n=2 must end with END n=2; it sent n=${end}`)
      expect(
        seen === '1:test.1 2:test.2',
        `LST n=2 must list the two newest, oldest first, each with its ref; it listed ${seen || 'nothing'}`,
      )
      expect(
        operations.every((one) => one.dev === dev && one.act === 'close_door'),
        'OPS must contain dev and act of the CMD',
      )
      const { last } = await host.greet()
      expect(last === ops[2], 'WELCOME last must be the newest operation')
    },
  },
  {
    number: 23,
    title: `the memory holds ${CAPACITY} operations; an overwritten operation is forgotten, moved=1, never none`,
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      await bench.fresh()
      const ops: string[] = []
      for (let n = 0; n < CAPACITY + 4; n++) {
        await host.pass(2)
        const op = host.newOperation()
        ops.push(op)
        const outcome = await host.perform({ op, dev, act: 'close_door' })
        expect(
          outcome.refused === undefined,
          `close_door of a closed door must be done; it was ${textOf(outcome)}`,
        )
      }
      const { count, mem } = await host.greet()
      expect(
        count === CAPACITY,
        `WELCOME must have count=${CAPACITY} after ${ops.length} operations; it has ${count}`,
      )
      for (const n of [0, 3]) {
        const lost = await host.query(ops[n]!)
        expect(
          lost.state === 'forgotten' && lost.moved,
          `an operation that was overwritten must be forgotten, moved=1; it is ${textOf(lost)}`,
        )
      }
      const kept = await host.query(ops[4]!)
      expect(
        kept.state === 'done',
        `the ${CAPACITY}th newest operation must still be known; it is ${textOf(kept)}`,
      )
      await host.pass(3)
      const never = await host.query(host.newOperation())
      expect(
        never.state === 'none' && !never.moved,
        `an operation that never came, newer than all, must be none, moved=0; it is ${textOf(never)}`,
      )
      expect((await host.greet()).mem === mem, 'overwriting must not change mem')
    },
  },
  {
    number: 24,
    title:
      'power cut in a motion: interrupted, moved=1; the motion does not continue; the repeated CMD moves nothing',
    power: true,
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      await bench.fresh()
      const whole = await bench.done(dev, 'open_door')
      const before = await host.greet()
      const op = await cutIn(bench, () => bench.started(dev, 'open_door'), whole.ms / 2)
      const from = host.heard.length
      const after = await host.greet()
      expect(after.boot !== before.boot, 'boot must be a new one after each start')
      expect(after.mem === before.mem, 'mem must outlive the loss of power')
      expect(
        after.last === op,
        `WELCOME last must be the operation that was cut; it is ${after.last ?? 'absent'}`,
      )
      const result = await host.query(op)
      expect(
        result.state === 'interrupted' && result.moved,
        `an operation that was cut by a power failure must be interrupted, moved=1; it is ${textOf(result)}`,
      )
      const repeated = await host.perform({ op, dev, act: 'open_door' })
      expect(
        textOf(repeated) === textOf(result),
        `its CMD again must be answered with what is stored; it was ${textOf(repeated)}`,
      )
      await host.pass(SETTLE_MS)
      const { door } = host.sensed(dev, from)
      expect(
        door !== 'moving' && door !== 'open',
        `no motion may continue after a power failure; the door of ${dev} is ${door}`,
      )
    },
  },
  {
    number: 25,
    title: 'power cut at once after ACK: the operation is in memory, never none',
    power: true,
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      const op = await cutIn(bench, () => bench.started(dev, 'open_door'), 0)
      await host.greet()
      const result = await host.query(op)
      expect(
        result.state !== 'none' && result.moved,
        `an acknowledged operation must be in memory before its motor starts; after the power failure it is ${textOf(result)}`,
      )
    },
  },
  {
    number: 26,
    title: 'power cut after RES: result, owner and the greatest overwritten id are stored',
    power: true,
    async prove(bench) {
      const { host } = bench
      const dev = bench.device('bin')
      await bench.fresh()
      const op = host.newOperation()
      const first = await host.perform({ op, dev, act: 'open_door' })
      expect(first.refused === undefined, `open_door must be carried out; it was ${textOf(first)}`)
      const ancient = '0'.repeat(32)
      const forgotten = await host.query(ancient)
      const before = await host.greet()
      await cutPower(bench)
      const after = await host.greet()
      const now: Result = await host.query(op)
      expect(
        textOf(first) === textOf(now),
        `RES was ${textOf(first)}; after a power failure QRY returns ${textOf(now)}`,
      )
      const whose = (welcome: typeof after): string =>
        `hub=${welcome.hub} ctl=${welcome.ctl} store=${welcome.store} mem=${welcome.mem}`
      expect(
        whose(after) === whose(before),
        `the owner must outlive the power: it was ${whose(before)}, it is ${whose(after)}`,
      )
      const still = await host.query(ancient)
      expect(
        still.state === forgotten.state,
        `what was overwritten must stay forgotten: it was ${forgotten.state}, it is ${still.state}`,
      )
    },
  },
  {
    number: 27,
    title:
      'events count up from 1 since the start, none twice, and every line that the board sent is a frame',
    async prove(bench) {
      const { host } = bench
      await bench.fresh()
      await host.pass(SETTLE_MS)
      const broken = host.heard.filter(({ frame, line }) => frame === undefined && line.trim() !== '')
      const share = broken.length / Math.max(1, host.heard.length)
      if (share > 0.01)
        throw new Broken(
          `every line must be a frame of the SPEC; ${broken.length} were not, as ${JSON.stringify(broken[0]!.line.slice(0, 80))}`,
        )
      let numbers = new Map<number, string>()
      let last = 0
      let boot = ''
      for (const { frame } of host.heard) {
        if (frame?.type === 'WELCOME' && frame.boot !== boot)
          [boot, numbers, last] = [frame.boot, new Map<number, string>(), 0]
        if (frame?.type !== 'EVT') continue
        const { seq: _, ...event } = frame
        const text = JSON.stringify(event)
        expect(
          (numbers.get(event.ev) ?? text) === text,
          `an event must have a number of its own; ev=${event.ev} was given to two`,
        )
        expect(numbers.has(event.ev) || event.ev > last, `ev must count up; ${event.ev} came after ${last}`)
        numbers.set(event.ev, text)
        last = Math.max(last, event.ev)
      }
    },
  },
]
