import { silentLog } from '../../protocol/model/log.ts'
import type { FrameOf, Refusal } from '../../protocol/serial/frames.ts'
import { uuidOfOp } from '../../protocol/serial/codec.ts'
import type { Act } from '../../simulator/physics/world-state.ts'
import { SimulatedHub, type SimulatedHubOptions } from '../../simulator/simulated-hub.ts'
import type { SimulatorStorage } from '../../simulator/storage/append-log.ts'
import { memoryStorage } from './memory-storage.ts'
import { smallHub } from '../simulator/support/hardware.ts'
import { TestHost, operation } from './room-host.ts'
import { type VirtualClock, virtualClock, virtualRuntime } from './clock.ts'

/** A simulated hub under virtual time, with a host at its `front` controller. */
export interface Bench {
  clock: VirtualClock
  storage: SimulatorStorage
  hub: SimulatedHub
  host: TestHost
  /** Sends a command, lets `ms` pass, and returns its last result or its refusal. */
  perform(n: number, device: string, action: string, extra?: Record<string, unknown>, ms?: number): Outcome
  dispense(n: number, extra?: Record<string, unknown>, ms?: number): Outcome
  /** The answer to QRY. */
  ask(n: number): FrameOf<'RES'> | undefined
  /** Reconnects with a new session, and completes the greeting. */
  reconnect(host?: string): TestHost
  /** The process dies and restarts with its stored data. */
  killAndRestart(): void
  /** The acts of operation `n`. */
  actsOf(n: number): Act[]
}

export type Outcome = Partial<FrameOf<'RES'>> & { refused?: Refusal }

export function openRoom(options: Partial<SimulatedHubOptions> & { seed?: number } = {}): Bench {
  const clock = virtualClock()
  const storage = options.storage ?? memoryStorage()
  const build = (seed: number): SimulatedHub =>
    new SimulatedHub({
      hardware: smallHub,
      runtime: virtualRuntime(seed, clock),
      log: silentLog,
      ...options,
      storage,
    })
  const seed = options.seed ?? 1
  let sessions = 0
  let closeFormer = (): void => {}
  const bench: Bench = {
    clock,
    storage,
    hub: build(seed),
    host: undefined as unknown as TestHost,
    perform(n, dev, act, extra = {}, ms = 15_000) {
      const { host } = bench
      const before = host.received.length
      host.command({ op: operation(n), dev, act, ...extra })
      clock.advance(ms)
      const since = host.received.slice(before)
      const refused = since.find((frame) => frame.type === 'NAK')
      if (refused) return { refused: refused.why }
      return since.filter((frame) => frame.type === 'RES').findLast(({ op }) => op === operation(n)) ?? {}
    },
    dispense: (n, extra, ms) =>
      bench.perform(n, 'cabinet-1', 'dispense', { shelf: 1, row: 1, bin: 1, ...extra }, ms),
    ask(n) {
      bench.host.query(operation(n))
      clock.advance(1000)
      return bench.host.of('RES').findLast(({ op }) => op === operation(n))
    },
    reconnect(host = (0x10000000 + ++sessions).toString(16)) {
      closeFormer()
      bench.host = new TestHost(bench.hub, 'front', clock, { host })
      closeFormer = () => bench.host.close()
      clock.advance(1)
      bench.host.hello()
      clock.advance(50)
      return bench.host
    },
    killAndRestart() {
      clock.clear()
      bench.hub = build(seed + 1)
    },
    actsOf: (n) => bench.hub.actuations().filter((act) => act.operation_id === uuidOfOp(operation(n))),
  }
  bench.reconnect()
  return bench
}
