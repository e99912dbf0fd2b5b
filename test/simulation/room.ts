import type { GpioLines } from '../../protocol/model/hardware.ts'
import { silentLog } from '../../protocol/model/log.ts'
import type { LinePort, OpenLinePort } from '../../protocol/serial/line-port.ts'
import { decodeFrame, uuidOfOp } from '../../protocol/serial/codec.ts'
import { createSimulatedHub, type SimulatedHub } from '../../simulator/simulated-hub.ts'
import { memoryStorage } from '../../simulator/storage/append-log.ts'
import type { Chance } from './chance.ts'
import { simulatedHardware, stockedFacings } from './hardware.ts'
import type { Life, Scheduler } from './scheduler.ts'

/** The hub's room: hardware that goes on while the hub's service is dead, and the cables between the two. */
export class Room {
  readonly hub: SimulatedHub
  readonly #scheduler: Scheduler
  readonly #ports = new Map<Life, Set<LinePort>>()
  readonly #life: Life
  /** What each command on the serial lines was for, seen in passing. */
  readonly refOfOperation = new Map<string, string>()
  /** Commands that left before their intent was committed (I1). */
  readonly unjournaled: string[] = []

  constructor(scheduler: Scheduler, chance: Chance) {
    this.#scheduler = scheduler
    this.#life = scheduler.newLife('room', () => {})
    this.hub = createSimulatedHub({
      hardware: simulatedHardware,
      runtime: { clock: scheduler.clock(this.#life, () => 0), random: chance },
      storage: memoryStorage(),
      log: silentLog,
      lineLatencyMs: () => chance.between(1, 4),
      loaded: stockedFacings.map(({ product_id, cabinet, shelf, row, units }) => ({
        cabinet,
        shelf,
        row,
        product_id,
        units,
      })),
    })
  }

  /** Plans something in the room, whoever is alive. */
  plan(delayMs: number, run: () => unknown): void {
    this.#scheduler.plan(this.#life, delayMs, run)
  }

  /** The serial ports, as one life of the hub's service has them: when it dies, the kernel closes them. */
  portsFor(life: Life, isCommitted: (operationId: string) => boolean): OpenLinePort {
    const ports = new Set<LinePort>()
    this.#ports.set(life, ports)
    // Each call into the hub is a task of its own, so that a crash there unwinds the hub and nothing of the room.
    const inHub =
      <Args extends unknown[]>(call: (...args: Args) => void) =>
      (...args: Args): void =>
        void this.#scheduler.plan(life, 0, () => call(...args))
    return (options, handlers) => {
      const port = this.hub.openPort(options, {
        onOpen: inHub(() => handlers.onOpen()),
        onLine: inHub((line: string) => handlers.onLine(line)),
        onClose: inHub((reason: string) => handlers.onClose(reason)),
      })
      ports.add(port)
      return {
        write: (line) => {
          this.#listen(line, isCommitted)
          return port.write(line)
        },
        close: () => {
          ports.delete(port)
          port.close()
        },
      }
    }
  }

  gpioFor(life: Life): GpioLines {
    const lines = this.hub.gpio.asLines()
    return {
      ...lines,
      read: (name) => lines.read(name),
      write: (name, level) => lines.write(name, level),
      watch: (name, listener) => lines.watch(name, () => void this.#scheduler.plan(life, 0, listener)),
      close: () => lines.close(),
    }
  }

  /** The service is dead: its file descriptors close, and outputs keep their levels. */
  unplug(life: Life): void {
    for (const port of this.#ports.get(life) ?? []) port.close()
    this.#ports.delete(life)
  }

  #listen(line: string, isCommitted: (operationId: string) => boolean): void {
    const decoded = decodeFrame(line)
    if (!decoded.ok || decoded.frame.type !== 'CMD') return
    const operationId = uuidOfOp(decoded.frame.op)
    if (decoded.frame.ref !== undefined) this.refOfOperation.set(operationId, decoded.frame.ref)
    if (!isCommitted(operationId)) this.unjournaled.push(operationId)
  }
}
