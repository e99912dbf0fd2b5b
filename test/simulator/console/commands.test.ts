import { PassThrough } from 'node:stream'
import { beforeEach, describe, expect, test } from 'vitest'
import { silentLog } from '../../../protocol/model/log.ts'
import { commandHelp, createSession, startRepl } from '../../../simulator/console/repl.ts'
import { scenarioCommand } from '../../../simulator/console/scenario-command.ts'
import { Fleet } from '../../../simulator/fleet.ts'
import { AnswerError } from '../../../simulator/interface/client.ts'
import { SimulatedHub } from '../../../simulator/simulated-hub.ts'
import { memoryStorage } from '../../world/memory-storage.ts'
import type { SavedWorld } from '../../../simulator/storage/world-shelf.ts'
import { openRoom, type Bench } from '../../world/room.ts'
import { testConsole, type TestConsole } from '../support/console.ts'
import { smallHub } from '../support/hardware.ts'
import { virtualRuntime } from '../../world/clock.ts'

let bench: Bench
let console: TestConsole
let type: (line: string) => Promise<string>

beforeEach(async () => {
  bench = openRoom()
  const { clock } = bench
  const runtime = virtualRuntime(7, bench.clock)
  const worlds = new Map<string, SavedWorld>()
  const fleet = new Fleet({
    clock,
    wireKept: 100,
    storageOf: (hubId) => (hubId === 1 ? bench.storage : memoryStorage()),
    worlds: {
      names: () => [...worlds.keys()],
      read: (name) => worlds.get(name),
      write: (name, world) => void worlds.set(name, world),
    },
    make: (hardware, storage) =>
      hardware.hubId === 1 ? bench.hub : new SimulatedHub({ hardware, storage, runtime, log: silentLog }),
    mount: async () => async () => {},
  })
  await fleet.add(smallHub)
  const { random } = runtime
  console = testConsole({ fleet, clock, random })
  const session = createSession(console.simulator, clock)
  await session.begin()
  type = (line) => session.answer(line)
})

describe('the console’s commands', () => {
  test('the commands state, rows and log show the present state', async () => {
    bench.dispense(1)
    expect(await type('state')).toContain('bin-1  door closed, lift down, 1 units')
    expect(await type('rows cabinet-1')).toContain('cabinet-1 shelf 1  4/5  5/5  5/5')
    expect(await type('rows 2')).not.toContain('cabinet-1')
    expect(await type('log 1')).toMatch(/^1 .*cabinet-1 {2}dispense/)
  })

  test('faults can be raised, listed and cleared at the console', async () => {
    expect(await type('fault jam cabinet-1 for_ms=5000 probability=0.5')).toMatch(/^fault-1 /)
    expect(await type('faults')).toBe('fault-1  jam  cabinet-1  p=0.5  5000 ms left')
    expect(await type('clear fault-1')).toBe('fault-1 cleared')
    expect(await type('faults')).toBe('no faults')
    expect(await type('fault jam row 1/1/2')).toMatch(/^fault-2 /)
    expect(await type('clear all')).toContain('cleared')
    expect(await type('fault types')).toContain('missed_drop')
  })

  test('people can act and the power can be switched off at the console', async () => {
    bench.dispense(1)
    bench.perform(2, 'bin-1', 'open_door')
    expect(await type('act take_items bin-1')).toBe(
      '{"action":"take_items","target":"bin-1","units":1,"left":0}',
    )
    expect(await type('act restock cabinet-1 shelf=1 row=1 units=1')).toContain('"units":5')
    expect(await type('act open_door main')).toBe('door main is locked')
    expect(await type('power off back')).toContain('back  off')
  })

  test('the console shows the wire, sends frames, and reads each frame with the fields of its line', async () => {
    expect(await type('wire send front ~0001 HELLO proto=2 host=abcd0001')).toMatch(
      /^~0001 HELLO proto=2 host=abcd0001\*[0-9a-f]{4}$/,
    )
    bench.clock.advance(100)
    expect(await type('wire 20')).toMatch(/front ← hub {2}~0001 HELLO[^]*front → hub {2}~\w+ WELCOME/)
  })

  test('hubs can be added and removed, and worlds saved and loaded, at the console', async () => {
    expect(await type('world save monday')).toBe('worlds: monday')
    expect(await type('hub add 2')).toBe('hub 2 is simulated')
    expect(await type('hub')).toBe('hubs: 1, 2')
    expect(await type('hub remove 2')).toBe('hub 2 is removed')
    expect(await type('world load tuesday')).toMatch(/no world tuesday; worlds: monday/)
  })

  test('a run can be recorded, saved, listed and replayed at the console', async () => {
    bench.dispense(1)
    bench.perform(2, 'bin-1', 'open_door')
    expect(await type('scenario record')).toMatch(/written down/)
    await type('act take_items bin-1')
    expect(await type('scenario save emptied')).toMatch(
      /wait_until:\n[^]*door: open\n {2}- act:\n {6}action: take_items/,
    )
    expect(await type('scenario')).toMatch(/^emptied +\(own\) Recorded/)
    expect(await type('scenario remove emptied')).toBe('emptied is removed')
  })

  test.each([
    ['dance', /unknown command dance/],
    ['fault', /needs a type/],
    ['fault explode', /no fault explode/],
    ['fault toString', /no fault toString/],
    ['fault jam bin-9', /no bin-9/],
    ['fault jam for_ms=soon', /for_ms/],
    ['clear', /needs the id/],
    ['clear fault-9', /no active fault/],
    ['act', /action|Invalid/],
    ['act take_items', /target/],
    ['power', /state/],
    ['power off attic', /controllers: front, back/],
    ['log -1', /whole number/],
    ['wire -1', /whole number/],
    ['hub add x', /number of a hub/],
    ['scenario run nothing', /no scenario nothing/],
    ['scenario save x', /nothing is being recorded/],
    ['scenario do dance: {}', /must be one of act, fault/],
    ['scenario do pay: {customer: ann}', /ann has no cart yet/],
    [
      'scenario do cart: {customer: ann, items: [{row: 1/1/1, units: 1}]}',
      /start the simulator with the demo/,
    ],
  ])('the command "%s" is refused with its reason', async (line, message) => {
    expect(await type(line)).toMatch(message)
  })

  test('a terminal shows a prompt, help, answers in the order of the commands, and an end', async () => {
    const { hub } = bench
    const input = new PassThrough()
    const output = new PassThrough()
    let text = ''
    output.on('data', (chunk: Buffer) => void (text += chunk.toString()))
    const exited = new Promise<void>((resolve) => {
      startRepl(console.simulator, { clock: bench.clock, input, output, onExit: resolve })
    })
    input.write('hub\nhub 9\nhelp\nfault jam\nexit\n')
    await exited
    expect(text).toContain('hub 1> ')
    expect(text).toMatch(/hubs: 1[^]*hub 9 is not simulated here/)
    expect(text).toContain(commandHelp)
    expect(hub.faults.active()).toHaveLength(1)
  })
})

test('the text of a recording that cannot be saved is in the error, because the recording has ended', async () => {
  const refused = new AnswerError(422, 'invalid_scenario', 'buy-one is a scenario of the library')
  const simulator = {
    ask: (method: string) =>
      method === 'DELETE' ? Promise.resolve({ text: 'steps: []' } as never) : Promise.reject(refused),
  }
  const call = { simulator, clock: bench.clock, hubId: 1, values: {}, text: '', show: () => {} }
  await expect(scenarioCommand({ ...call, words: ['save', 'buy-one'] })).rejects.toThrow(
    /of the library[^]*steps: \[\]/,
  )
})
