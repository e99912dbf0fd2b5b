import type { GpioLines } from '../../protocol/model/hardware.ts'
import { silentLog } from '../../protocol/model/log.ts'
import type { LinePort, OpenLinePort } from '../../protocol/serial/line-port.ts'
import { decodeFrame, uuidOfOp } from '../../protocol/serial/codec.ts'
import type { WorldRecord } from '../../simulator/physics/world-state.ts'
import { SimulatedHub } from '../../simulator/simulated-hub.ts'
import type { SimulatorStorage } from '../../simulator/storage/append-log.ts'
import { memoryStorage } from '../world/memory-storage.ts'
import { unitOfRef } from '../../edge/core/operations/intend.ts'
import type { Chance } from './chance.ts'
import { ColdWatch, type ColdRules } from './cold-watch.ts'
import { DoorWatch } from './door-watch.ts'
import { facingsOf, hardwareOf } from './hardware.ts'
import type { Life, Scheduler } from './scheduler.ts'

/** `warmingMs`: how fast the air of a fridge warms; undefined: as in a real fridge. */
export type RoomRules = ColdRules & { warmingMs?: number | undefined; pace?: number | undefined }

const UNWATCHED: RoomRules = { limitCelsius: 100, healthShutoffMs: Infinity, proofMs: 0 }

/** Times of the simulated scheduler are sums of fractions. */
const ROUNDING_MS = 0.001

/** The hub's end of one of its serial lines, open. */
interface Plugged {
  path: string
  port: LinePort
  unplugged: () => void
}

/** A controller's end. */
interface Socket {
  room: Room
  path: string
}

/** The hub's room: hardware that continues while the hub's service is dead, and the cables between them. */
export class Room {
  readonly hub: SimulatedHub
  readonly #scheduler: Scheduler
  readonly #ports = new Map<Life, Set<Plugged>>()
  /** Destinations of crossed cables. */
  readonly #crossed = new Map<string, Socket>()
  readonly #life: Life
  /** The unit of each command, read from the serial lines. */
  readonly refOfOperation = new Map<string, string>()
  /** Commands that left before their intent was committed (I1). */
  readonly unjournaled: string[] = []
  /** A controller has stored a step of an update of its firmware. */
  onUpdate: (controller: string) => void = () => {}
  /** Blocks of a firmware that a controller stored while one of its motors ran. */
  readonly hasty: string[] = []
  /** Motors that ran longer than their command allowed (I7), with the times. */
  readonly overran: { operation_id: string; ms: number; allowedMs: number }[] = []
  readonly #allowedMs = new Map<string, number>()
  readonly #startedAt = new Map<string, number>()

  /** Proof of cold in the fridge, as an observer judges it. */
  readonly cold: ColdWatch
  readonly doors: DoorWatch

  constructor(
    scheduler: Scheduler,
    chance: Chance,
    hubId = 1,
    { warmingMs, pace, ...rules }: RoomRules = UNWATCHED,
  ) {
    this.cold = new ColdWatch(rules)
    this.#scheduler = scheduler
    this.#life = scheduler.newLife('room', () => {})
    this.hub = new SimulatedHub({
      hardware: hardwareOf(hubId),
      runtime: { clock: scheduler.clock(this.#life, () => 0), random: chance },
      storage: this.#watchedStorage(),
      log: silentLog,
      pace,
      lineLatencyMs: () => chance.between(1, 4),
      timing: warmingMs === undefined ? {} : { warmingMs },
      loaded: facingsOf(hubId).map(({ product_id, cabinet, shelf, row, units }) => ({
        cabinet,
        shelf,
        row,
        product_id,
        units,
      })),
    })
    this.hub.world.chronicle.onRecord((record) => this.#watch(record))
    this.doors = new DoorWatch(this.hub, hardwareOf(hubId), () => scheduler.time)
  }

  /** The boards' flash, observed. */
  #watchedStorage(): SimulatorStorage {
    const storage = memoryStorage()
    return {
      ...storage,
      open: <Entry>(name: string) => {
        const log = storage.open<Entry>(name)
        const controller = name.replace('memory-', '')
        const append = (entry: Entry): void => {
          const isBlock = 'block' in (entry as object)
          if (isBlock && this.hub.controllers.get(controller)?.isMoving) this.hasty.push(controller)
          log.append(entry)
          if (isBlock || 'running' in (entry as object)) this.onUpdate(controller)
        }
        const replace = (entries: readonly Entry[]): void => {
          log.replace(entries)
          if (entries.some((entry) => 'running' in (entry as object))) this.onUpdate(controller)
        }
        return { ...log, append, replace }
      },
    }
  }

  #watch(record: WorldRecord): void {
    if (record.kind === 'began' && record.motion.action === 'dispense') {
      const { operation_id } = record.motion
      const isForSale = unitOfRef(this.refOfOperation.get(operation_id) ?? '') !== undefined
      if (isForSale) this.cold.dispense(operation_id, this.#scheduler.time)
    }
    if (record.kind === 'began') this.#startedAt.set(record.motion.operation_id, this.#scheduler.time)
    if (record.kind !== 'act') return
    const { operation_id } = record.act
    const startedAt = this.#startedAt.get(operation_id ?? '')
    const allowedMs = this.#allowedMs.get(operation_id ?? '')
    if (operation_id === undefined || startedAt === undefined || allowedMs === undefined) return
    this.#startedAt.delete(operation_id)
    const ms = this.#scheduler.time - startedAt
    if (ms > allowedMs + ROUNDING_MS) this.overran.push({ operation_id, ms, allowedMs })
  }

  /** Schedules an event in the room, independent of any life. */
  plan(delayMs: number, run: () => unknown): void {
    this.#scheduler.plan(this.#life, delayMs, run)
  }

  /** The serial ports of one life of the hub's service: when it dies, the kernel closes them. */
  portsFor(life: Life, isCommitted: (operationId: string) => boolean): OpenLinePort {
    const ports = new Set<Plugged>()
    this.#ports.set(life, ports)
    this.cold.trust(this.#scheduler.time)
    // Each call into the hub is a separate task, so that a crash there unwinds only the hub, not the room.
    const inHub =
      <Args extends unknown[]>(call: (...args: Args) => void) =>
      (...args: Args): void =>
        void this.#scheduler.plan(life, 0, () => call(...args))
    return (options, handlers) => {
      const { room, path } = this.#crossed.get(options.path) ?? { room: this, path: options.path }
      const onClose = inHub((reason: string) => handlers.onClose(reason))
      const port = room.hub.openPort(
        { ...options, path },
        {
          onOpen: inHub(() => handlers.onOpen()),
          onLine: inHub((line: string) => {
            if (path === 'cold') this.cold.hear(line, this.#scheduler.time)
            handlers.onLine(line)
          }),
          onClose,
        },
      )
      const plugged = { path: options.path, port, unplugged: () => onClose('unplugged') }
      ports.add(plugged)
      return {
        write: (line) => {
          this.#listen(line, isCommitted)
          return port.write(line)
        },
        close: () => {
          ports.delete(plugged)
          port.close()
        },
      }
    }
  }

  /** Plugs the cable of a port into another socket, or into its own. */
  plug(path: string, socket: Socket = { room: this, path }): void {
    this.#crossed.set(path, socket)
    for (const ports of this.#ports.values())
      for (const plugged of ports) {
        if (plugged.path !== path) continue
        ports.delete(plugged)
        plugged.port.close()
        plugged.unplugged()
      }
  }

  /** Whether the cable of a port leads to another controller than intended. */
  isCrossed(path: string): boolean {
    const socket = this.#crossed.get(path)
    return socket !== undefined && (socket.room !== this || socket.path !== path)
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

  /** The service is dead: its file descriptors are closed, and outputs keep their levels. */
  unplug(life: Life): void {
    for (const { port } of this.#ports.get(life) ?? []) port.close()
    this.#ports.delete(life)
  }

  #listen(line: string, isCommitted: (operationId: string) => boolean): void {
    const decoded = decodeFrame(line)
    if (!decoded.ok || decoded.frame.type !== 'CMD') return
    const operationId = uuidOfOp(decoded.frame.op)
    this.#allowedMs.set(operationId, decoded.frame.max)
    if (decoded.frame.ref !== undefined) this.refOfOperation.set(operationId, decoded.frame.ref)
    if (!isCommitted(operationId)) this.unjournaled.push(operationId)
  }
}
