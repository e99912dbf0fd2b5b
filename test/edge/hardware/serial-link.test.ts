import { array, assert, constantFrom, nat, property } from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ControllerEvents, OperationOutcome } from '../../../edge/hardware/controller-events.ts'
import { createControllers } from '../../../edge/hardware/controllers.ts'
import { defaultLinkSettings } from '../../../protocol/settings/hub-limits.ts'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { opOfUuid } from '../../../protocol/serial/codec.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { noisyLine, type Fate } from './noisy-line.ts'
import { ScriptedController } from './scripted-controller.ts'

const hardware = HardwareDescription.parse({
  hubId: 1,
  controllers: [{ id: 'bins', port: '/dev/bins', devices: [{ kind: 'bin', number: 1 }] }],
  gpio: { chipLabel: 'none', lines: [] },
})

function bench(fates: () => Fate = () => 'pass') {
  const runtime = virtualRuntime()
  const controller = new ScriptedController(runtime.clock)
  const line = noisyLine(runtime.clock, controller, fates)
  const said: string[] = []
  const memories: string[] = []
  const results: OperationOutcome[] = []
  const events: ControllerEvents = {
    onUp(id, { bootId, memoryId }) {
      said.push(`${id} up ${bootId}`)
      memories.push(memoryId)
    },
    onDown: (id, reason) => void said.push(`${id} down: ${reason}`),
    onResult: (_id, outcome) => void results.push(outcome),
    onRefused: (_id, operationId, why) => void said.push(`${operationId} refused: ${why}`),
    onListed: (id, operations) =>
      void said.push(`${id} lists ${operations.map((operation) => operation.operationId).join(' ')}`),
    onDevice: (_id, event) => void said.push(JSON.stringify(event)),
  }
  const controllers = createControllers(
    { hardware, openPort: line.openPort, runtime, log: silentLog, settings: defaultLinkSettings },
    events,
  )
  const open = (operationId: string): boolean =>
    controllers.perform({ operationId, device: 'bin-1', action: 'open_door', maxMs: 5000, ref: '1.2.3' })
  return { runtime, controller, line, said, memories, results, events, controllers, open }
}

describe('a serial link', () => {
  it('a serial link connects after the handshake, and carries a command to its result', () => {
    const { runtime, controller, controllers, said, memories, results, open } = bench()
    expect(open(uuidv7(runtime))).toBe(false)
    controllers.start()
    runtime.clock.advance(10)
    expect(said).toEqual(['bins up b0000001'])
    expect(memories.at(-1)).toBe('aaaaaaaa')
    const id = uuidv7(runtime)
    expect(open(id)).toBe(true)
    runtime.clock.advance(200)
    expect(results).toEqual([
      { operationId: id, state: 'done', why: undefined, moved: true, drops: 0, ms: 100 },
    ])
    expect(controller.motions).toEqual([opOfUuid(id)])
  })

  it('a serial link executes each command once, whatever lines are lost, doubled or damaged (I1)', () => {
    const fate = constantFrom<Fate>('pass', 'pass', 'pass', 'lose', 'double', 'damage')
    assert(
      property(array(fate, { minLength: 20, maxLength: 200 }), nat({ max: 6 }), (fates, commands) => {
        const { runtime, controller, controllers, results, said, open } = bench(() => fates.shift() ?? 'pass')
        controllers.start()
        const sent: string[] = []
        for (let turn = 0; turn < 400; turn++) {
          runtime.clock.advance(100)
          if (sent.length < commands) {
            const id = uuidv7(runtime)
            if (open(id)) sent.push(id)
          }
        }
        expect(new Set(controller.motions).size).toBe(controller.motions.length)
        const downs = said.filter((text) => text.includes('down')).length
        // One connection loses nothing; a later connection asks for results, and does not repeat commands.
        if (downs === 0) expect(results.map((result) => result.operationId).sort()).toEqual(sent.toSorted())
        for (const id of sent) controllers.query('bin-1', id)
        runtime.clock.advance(2000)
        for (const id of sent) {
          const last = results.findLast((result) => result.operationId === id)
          expect(last?.state).toBe(controller.motions.includes(opOfUuid(id)) ? 'done' : 'none')
        }
      }),
      { numRuns: 300 },
    )
  })

  it('a serial link reports an event once on a line that doubles everything and loses acknowledgements', () => {
    let count = 0
    const { runtime, controller, controllers, said } = bench(() => (count++ % 3 === 2 ? 'lose' : 'double'))
    controllers.start()
    runtime.clock.advance(500)
    controller.report({ dev: 'bin-1', drop: 1 })
    controller.report({ dev: 'bin-1', temp: 10_425 })
    controller.report({ dev: 'bin-1', door: 'open', occ: true })
    runtime.clock.advance(3000)
    expect(said.filter((text) => text.startsWith('{'))).toHaveLength(3)
    expect(said).toContain('{"device":"bin-1","eventId":"b0000001.2","celsius":4.25}')
    expect(said).toContain('{"device":"bin-1","eventId":"b0000001.3","door":"open","occupied":true}')
  })

  it('a serial link reports an event with the sequence number of an event that was handled more than 10 s ago', () => {
    const { runtime, controller, controllers, said } = bench()
    controllers.start()
    runtime.clock.advance(500)
    controller.seq = 0x77
    controller.report({ dev: 'bin-1', occ: true })
    runtime.clock.advance(11_000)
    // Heartbeats have taken the numbers between.
    controller.seq = 0x77
    controller.report({ dev: 'bin-1', occ: false })
    runtime.clock.advance(500)
    expect(said.filter((text) => text.startsWith('{'))).toEqual([
      '{"device":"bin-1","eventId":"b0000001.1","occupied":true}',
      '{"device":"bin-1","eventId":"b0000001.2","occupied":false}',
    ])
  })

  it('a serial link handles a result once, however long its acknowledgements are lost', () => {
    const { runtime, controller, controllers, results } = bench()
    controllers.start()
    runtime.clock.advance(500)
    const line = `~0077 RES op=${'0'.repeat(32)} state=done moved=1 drops=1 ms=1`
    for (let repetition = 0; repetition < 50; repetition++) {
      controller.say(line)
      runtime.clock.advance(400)
    }
    expect(results).toHaveLength(1)
  })

  it('a serial link does not acknowledge a result if its handler threw, so that the result is repeated', () => {
    const { runtime, controllers, events, results, open } = bench()
    controllers.start()
    runtime.clock.advance(10)
    const keep = { ...events }
    events.onResult = () => {
      throw new Error('the journal is full')
    }
    const id = uuidv7(runtime)
    open(id)
    expect(() => runtime.clock.advance(150)).toThrow('the journal is full')
    Object.assign(events, keep)
    runtime.clock.advance(1000)
    expect(results.map((result) => result.operationId)).toEqual([id])
  })

  it('a serial link reports a refusal as a command without a motion', () => {
    const { runtime, controllers, controller, said, open } = bench()
    controllers.start()
    runtime.clock.advance(10)
    controller.refuse = 'interlock'
    const id = uuidv7(runtime)
    open(id)
    runtime.clock.advance(1000)
    expect(said).toContain(`${id} refused: interlock`)
    expect(controller.motions).toEqual([])
  })

  it('a serial link notices an open but silent port, and reopens it until the controller answers', () => {
    const { runtime, controllers, controller, line, said } = bench()
    controllers.start()
    runtime.clock.advance(1000)
    controller.mute = true
    runtime.clock.advance(4100)
    expect(said).toEqual(['bins up b0000001', 'bins down: the port is silent'])
    expect(controllers.links()[0]?.up).toBe(false)
    runtime.clock.advance(600_000)
    expect(line.opened).toBeGreaterThan(15)
    expect(line.open).toBeLessThanOrEqual(1)
    controller.mute = false
    runtime.clock.advance(9000)
    expect(said.at(-1)).toBe('bins up b0000001')
    expect(new Set(controller.hosts).size).toBe(controller.hosts.length)
  })

  it('a serial link reopens a vanished port without an attempt limit, with a bounded pause', () => {
    const { runtime, controllers, line, said } = bench()
    line.absent = true
    controllers.start()
    runtime.clock.advance(3_600_000)
    expect(line.opened).toBeGreaterThan(3_600_000 / (defaultLinkSettings.maxReopenMs + 100))
    expect(line.opened).toBeLessThan(3_600_000 / (defaultLinkSettings.maxReopenMs / 2) + 10)
    line.absent = false
    runtime.clock.advance(defaultLinkSettings.maxReopenMs + 100)
    expect(said).toEqual(['bins up b0000001'])
  })

  it('a serial link never repeats a command on a later connection (I2)', () => {
    const { runtime, controllers, controller, line, open } = bench()
    controllers.start()
    runtime.clock.advance(10)
    controller.mute = true
    expect(open(uuidv7(runtime))).toBe(true)
    expect(open(uuidv7(runtime))).toBe(true)
    runtime.clock.advance(10)
    line.unplug()
    controller.mute = false
    runtime.clock.advance(60_000)
    expect(controllers.links()[0]?.up).toBe(true)
    expect(controller.motions).toEqual([])
  })

  it('a serial link starts a new session with a controller that restarted unnoticed', () => {
    const { runtime, controllers, controller, said, open } = bench()
    controllers.start()
    runtime.clock.advance(10)
    controller.restart('b0000002')
    const id = uuidv7(runtime)
    open(id)
    runtime.clock.advance(1000)
    expect(said).toEqual([
      'bins up b0000001',
      'bins down: the controller lost its session',
      'bins up b0000002',
    ])
    expect(controller.motions).toEqual([])
  })

  it('a serial link starts a new session when a controller reports its start', () => {
    const { runtime, controllers, controller, said } = bench()
    controllers.start()
    runtime.clock.advance(10)
    controller.restart('b0000002')
    controller.announce()
    runtime.clock.advance(400)
    expect(said).toEqual(['bins up b0000001', 'bins down: the controller restarted', 'bins up b0000002'])
  })

  it('a serial link ignores frames of an earlier session', () => {
    const { runtime, controllers, controller, said, memories, results } = bench()
    controller.mute = true
    controllers.start()
    runtime.clock.advance(5)
    controller.say('~0004 WELCOME proto=2 host=0badcafe fw=1 boot=b0000000 mem=deadbeef count=0')
    controller.say(`~0005 RES op=${'0'.repeat(32)} state=done moved=1 drops=1 ms=1`)
    controller.announce()
    runtime.clock.advance(100)
    expect(said).toEqual([])
    controller.mute = false
    runtime.clock.advance(500)
    expect(said).toEqual(['bins up b0000001'])
    expect(memories.at(-1)).toBe('aaaaaaaa')
    expect(results).toEqual([])
  })

  it('a serial link refuses an unreadable whole frame, so that it is not repeated endlessly', () => {
    const { runtime, controllers, controller } = bench()
    controllers.start()
    runtime.clock.advance(10)
    controller.say('~0077 NOVELTY x=1')
    controller.say('~0078 EVT ev=1 dev=toaster-1')
    runtime.clock.advance(10)
    expect(controller.naks).toEqual([
      { s: 0x77, why: 'unsupported' },
      { s: 0x78, why: 'bad_argument' },
    ])
  })

  it('a serial link lists the whole memory in order on a line that loses every third line', () => {
    let count = 0
    const { runtime, controllers, said, open } = bench(() => (count++ % 3 === 1 ? 'lose' : 'pass'))
    controllers.start()
    runtime.clock.advance(2000)
    const ids: string[] = []
    for (let operation = 0; operation < 12; operation++) {
      ids.push(uuidv7(runtime))
      open(ids.at(-1)!)
      runtime.clock.advance(1000)
    }
    expect(controllers.list('bins', 10)).toBe(true)
    expect(controllers.list('bins', 10)).toBe(true)
    runtime.clock.advance(10_000)
    const listings = said.filter((text) => text.includes('lists'))
    expect(listings).toHaveLength(1)
    expect(new Set(listings[0]!.split(' ').slice(2))).toEqual(new Set(ids.slice(-10)))
  })

  it('a serial link refuses an actuation that no controller could parse', () => {
    const { runtime, controllers } = bench()
    controllers.start()
    runtime.clock.advance(10)
    const request = {
      operationId: uuidv7(runtime),
      device: 'bin-1',
      action: 'open_door',
      maxMs: 5000,
    } as const
    expect(() => controllers.perform({ ...request, ref: 'two words' })).toThrow(RangeError)
    expect(() => controllers.perform({ ...request, maxMs: 1e9 })).toThrow(RangeError)
  })

  it('a serial link sends nothing after its stop', () => {
    const { runtime, controllers, line, said } = bench()
    controllers.start()
    runtime.clock.advance(10)
    controllers.stop()
    runtime.clock.advance(60_000)
    expect(line.open).toBe(0)
    expect(line.opened).toBe(1)
    expect(said).toEqual(['bins up b0000001'])
    controllers.start()
    runtime.clock.advance(10)
    expect(controllers.links()[0]?.up).toBe(true)
  })
})
