import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  MEMORY_CAPACITY,
  OperationMemory,
  type MemoryEntry,
  type StoredOperation,
} from '../../../simulator/firmware/operation-memory.ts'
import { memoryStorage } from '../../world/memory-storage.ts'
import { seededRandom } from '../../../simulator/faults/faults.ts'
import { openRoom } from '../../world/room.ts'
import { operation } from '../../world/room-host.ts'

const record = (n: number, state: StoredOperation['state'] = 'done'): StoredOperation => ({
  op: operation(n),
  state,
  why: undefined,
  moved: true,
  drops: 0,
  ms: 0,
  dev: 'bin-1',
  act: 'open_door',
})

describe('the memory of operations (SPEC §8)', () => {
  test('LST lists the operations with their commands, the oldest of the newest first; END gives their number', () => {
    const bench = openRoom()
    bench.dispense(1, { ref: '1041.2.0' }, 4000)
    bench.perform(2, 'bin-1', 'raise_lift', {}, 4000)
    bench.host.send({ type: 'LST', n: 256 })
    bench.clock.advance(1000)
    expect(bench.host.of('OPS')).toMatchObject([
      {
        op: operation(1),
        state: 'done',
        drops: 1,
        dev: 'cabinet-1',
        act: 'dispense',
        shelf: 1,
        ref: '1041.2.0',
      },
      { op: operation(2), state: 'done', dev: 'bin-1', act: 'raise_lift' },
    ])
    expect(bench.host.last('END')).toMatchObject({ n: 2 })
    bench.host.send({ type: 'LST', n: 1 })
    bench.clock.advance(1000)
    expect(bench.host.of('OPS').slice(2)).toMatchObject([{ op: operation(2) }])
    expect(bench.host.last('END')).toMatchObject({ n: 1 })
  })

  test('END waits until every OPS is acknowledged, also when all are lost at first', () => {
    const bench = openRoom()
    for (let n = 1; n <= 12; n++) {
      bench.perform(n, 'bin-1', n % 2 ? 'open_door' : 'close_door', {}, 2000)
    }
    bench.host.acknowledges = false
    bench.host.send({ type: 'LST', n: 256 })
    bench.clock.advance(2000)
    expect(bench.host.of('END')).toEqual([])
    expect(new Set(bench.host.of('OPS').map(({ op }) => op)).size).toBe(8)
    bench.host.acknowledges = true
    bench.clock.advance(2000)
    expect(bench.host.received.findIndex(({ type }) => type === 'END')).toBeGreaterThan(
      bench.host.received.findLastIndex(({ type }) => type === 'OPS'),
    )
    expect(new Set(bench.host.of('OPS').map(({ op }) => op)).size).toBe(12)
  })

  test('a lost memory has another id, and `none` then proves nothing about earlier operations', () => {
    const bench = openRoom()
    const { mem } = bench.host.last('WELCOME')!
    bench.dispense(1, {}, 4000)
    bench.hub.faults.raise({ type: 'memory_loss', target: 'front' })
    bench.clock.advance(2000)
    bench.reconnect()
    const welcome = bench.host.last('WELCOME')!
    expect(welcome.mem).not.toBe(mem)
    expect(welcome).toMatchObject({ count: 0 })
    expect(welcome.last).toBeUndefined()
    expect(bench.ask(1)).toMatchObject({ state: 'none' })
  })

  test('the memory stores its owner; a new owner may erase it, and a repetition does nothing more', () => {
    const bench = openRoom()
    const owner = { hub: 7, ctl: 'front', store: '5e11ab1e' }
    bench.dispense(1, {}, 4000)
    bench.host.send({ type: 'OWN', ...owner, wipe: false })
    bench.clock.advance(10)
    bench.reconnect()
    const kept = bench.host.last('WELCOME')!
    expect(kept).toMatchObject({ ...owner, count: 1 })
    for (let times = 0; times < 3; times++) {
      bench.host.send({ type: 'OWN', ...owner, hub: 8, wipe: true })
      bench.clock.advance(10)
    }
    bench.hub.power('off', 'front', 100)
    bench.clock.advance(1000)
    bench.reconnect()
    const wiped = bench.host.last('WELCOME')!
    expect(wiped).toMatchObject({ ...owner, hub: 8, count: 0 })
    expect(wiped.mem).not.toBe(kept.mem)
    expect(bench.ask(1)).toMatchObject({ state: 'none' })
  })

  test('the memory is not formatted while a motor runs, and takes no new owner if it cannot be written', () => {
    const bench = openRoom()
    const { mem } = bench.host.last('WELCOME')!
    const own = { type: 'OWN', hub: 7, ctl: 'front', store: '5e11ab1e', wipe: true } as const
    bench.perform(1, 'bin-1', 'raise_lift', {}, 10)
    bench.host.send(own)
    bench.clock.advance(10)
    expect(bench.host.last('NAK')?.why).toBe('busy')
    bench.clock.advance(10_000)
    bench.hub.faults.raise({ type: 'flash_fault', target: 'front' })
    bench.host.send(own)
    bench.clock.advance(10)
    expect(bench.host.last('NAK')?.why).toBe('memory_fault')
    bench.reconnect()
    expect(bench.host.last('WELCOME')).toMatchObject({ mem, count: 1 })
    expect(bench.host.last('WELCOME')?.hub).toBeUndefined()
  })

  test('the memory stores 256 operations, and reports an overwritten one as forgotten, never as none', () => {
    const log = memoryStorage().open<MemoryEntry>('memory')
    const memory = new OperationMemory(log, seededRandom(1))
    for (let n = 1; n <= MEMORY_CAPACITY + 10; n++) memory.begin(record(n))
    expect(memory.count).toBe(MEMORY_CAPACITY)
    expect(memory.result(operation(5))).toMatchObject({ state: 'forgotten', moved: true })
    expect(memory.result(operation(11))).toMatchObject({ state: 'done' })
    expect(memory.result(operation(9999))).toMatchObject({ state: 'none', moved: false })
    const restarted = new OperationMemory(log, seededRandom(2))
    expect(restarted.id).toBe(memory.id)
    expect(restarted.result(operation(5))).toMatchObject({ state: 'forgotten' })
  })

  test('a running operation is not overwritten, and is interrupted after a power failure', () => {
    const log = memoryStorage().open<MemoryEntry>('memory')
    const memory = new OperationMemory(log, seededRandom(1))
    memory.begin(record(1, 'running'))
    for (let n = 2; n <= MEMORY_CAPACITY + 5; n++) memory.begin(record(n))
    expect(memory.result(operation(1))).toMatchObject({ state: 'running' })
    expect(new OperationMemory(log, seededRandom(2)).result(operation(1))).toMatchObject({
      state: 'interrupted',
      moved: true,
    })
  })

  test('a restart finds the same memory after any number of writes and compactions', () => {
    const step = fc.tuple(fc.integer({ min: 1, max: 400 }), fc.constantFrom('done', 'failed', 'running'))
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 6000, size: 'max' }), (steps) => {
        const log = memoryStorage().open<MemoryEntry>('memory')
        const memory = new OperationMemory(log, seededRandom(1))
        for (const [n, state] of steps) {
          if (memory.get(operation(n))) memory.update(operation(n), { state, ms: n })
          else memory.begin(record(n, state))
        }
        const restarted = new OperationMemory(log, seededRandom(2))
        const settled = memory
          .newest(MEMORY_CAPACITY)
          .map((one) => (one.state === 'running' ? { ...one, state: 'interrupted' } : one))
        expect(restarted.newest(MEMORY_CAPACITY)).toEqual(settled)
        for (let n = 1; n <= 400; n++)
          if (!memory.get(operation(n)))
            expect(restarted.result(operation(n))).toEqual(memory.result(operation(n)))
      }),
      { numRuns: 20 },
    )
  })
})
