import { randomHex } from '../../protocol/model/ids.ts'
import type { Clock, Runtime } from '../../protocol/model/runtime.ts'
import { decodeFrame } from '../../protocol/serial/codec.ts'
import {
  OLDEST_SERIAL_VERSION,
  type Frame,
  type FrameBody,
  type FrameOf,
  type Refusal,
  SERIAL_PROTOCOL_VERSION,
} from '../../protocol/serial/frames.ts'
import {
  type Behaviour,
  type Command,
  type Sensed,
  binBehaviour,
  cabinetBehaviour,
  fridgeBehaviour,
} from './behaviours.ts'
import { FrameQueue } from './frame-queue.ts'
import { OperationMemory, Operations } from './operation-memory.ts'
import { Reporter } from './reporter.ts'
import { type CabinetPins, createPins, type Pins } from './pins.ts'
import { deviceId } from '../../protocol/model/hardware.ts'
import type { AskBoard, BoardEvent, Program } from '../board/messages.ts'
import { SIMULATED_KIND, simulatedPublicKey } from './image.ts'
import { Slots, splitFlash } from './slots.ts'

const NO_HOST = '00000000'
/** After this silence the session of a host ends. SPEC §5. */
const HOST_SILENT_MS = 5000
const REFUSALS_KEPT = 32
/** A later fall is not attributed to the cabinet's last operation. SPEC §8. */
const LATE_DROP_MS = 60_000
/** A new firmware that no host has kept returns to the former one after this time. SPEC §12. */
const TRIAL_MS = 180_000

interface FirmwareOptions {
  clock: Clock
  random: Runtime['random']
  /** The newest supported version of the serial protocol. */
  version: number
  /** See `SimulatedHubOptions`. */
  pace: number
  memory: OperationMemory
  slots: Slots
  /** Restarts the processor: this program ends at once. */
  reset: () => void
  /** `isRunning` reports to a dependent device whether another device moves. */
  behaviours: (isRunning: (device: string) => boolean) => ReadonlyMap<string, Behaviour>
  cabinets: readonly CabinetPins[]
  isMemoryFaulty: () => boolean
  isSupplyWeak: (device: string) => boolean
  transmit: (line: string) => void
  /** A host has begun a session, was welcomed, or is gone. */
  onSession: (state: 'begun' | 'on' | 'off') => void
}

/** A controller's program, from one start to the next loss of power. All its fields are RAM. */
class Firmware {
  readonly boot: string
  #options: FirmwareOptions
  #memory: OperationMemory
  #queue: FrameQueue
  #operations: Operations
  #reporter: Reporter
  #release: () => void
  /** The host session; undefined if there is none. */
  #host: string | undefined
  /** The protocol version of this session. */
  #spoken: number
  #welcomed = false
  #heardAt = 0
  #refusals = new Map<string, Refusal>()
  /** The latest operation of each cabinet, and when it ended. */
  #latest = new Map<string, { op: string; at: number }>()

  constructor(options: FirmwareOptions) {
    const { clock, random, memory } = options
    this.#options = options
    this.#memory = memory
    this.boot = randomHex(random, 4)
    this.#spoken = options.version
    this.#queue = new FrameQueue(clock, Math.floor(random.fraction() * 0x10000), options.transmit)
    const behaviours = options.behaviours((device) => this.#operations.isRunning(device))
    this.#operations = new Operations({
      ...options,
      behaviours,
      onResult: (result) => this.#ended(result),
    })
    this.#reporter = new Reporter(behaviours, this.#queue, {
      isListening: () => this.#welcomed,
      forHost: (sensed) => this.#forHost(sensed),
    })
    const removals = options.cabinets.map((cabinet) =>
      cabinet.onDrop((units) => this.#fell(cabinet.device, units)),
    )
    this.#release = () => {
      this.#reporter.stop()
      for (const remove of removals) remove()
    }
    const { slots } = options
    if (slots.isOnTrial) clock.after(TRIAL_MS, () => slots.isOnTrial && options.reset())
    if (!slots.hangs) this.#queue.sendOnce(this.#welcome(NO_HOST))
  }

  /** The power failed. */
  cut(): void {
    this.#release()
    this.#operations.cut()
    this.#queue.clear()
  }

  receive(line: string): void {
    if (this.#options.slots.hangs) return
    const decoded = decodeFrame(line)
    if (decoded.ok) {
      this.#heardAt = this.#options.clock.monotonic()
      this.#handle(decoded.frame)
    } else if (decoded.seq !== undefined)
      this.#refuse(decoded.seq, decoded.error === 'unknown_type' ? 'unsupported' : 'bad_argument')
  }

  #handle(frame: Frame): void {
    switch (frame.type) {
      case 'HELLO':
        return this.#hello(frame)
      case 'PING':
        if (this.#host !== undefined) this.#queue.send({ type: 'PONG', t: frame.t })
        return
      case 'ACK':
      case 'NAK':
        return this.#queue.answered(frame.s)
      case 'CMD':
        return this.#command(frame)
      case 'QRY':
        if (!this.#accept(frame.seq)) return
        this.#queue.send({ type: 'RES', ...this.#memory.result(frame.op) })
        return
      case 'LST': {
        if (!this.#accept(frame.seq)) return
        const operations = this.#memory.newest(frame.n)
        for (const operation of operations) this.#queue.send({ type: 'OPS', ...operation })
        this.#queue.send({ type: 'END', n: operations.length })
        return
      }
      case 'OWN':
        return this.#own(frame)
      case 'FWQ':
        // Firmware of version 2 knows no updates.
        if (this.#options.version < 3) return this.#refuse(frame.seq, 'unsupported')
        if (this.#accept(frame.seq)) this.#queue.send({ type: 'FW', ...this.#options.slots.about() })
        return
      case 'IMG':
      case 'BLK':
      case 'USE':
      case 'KEEP':
        return this.#update(frame)
      case 'FW':
      case 'WELCOME':
      case 'PONG':
      case 'RES':
      case 'OPS':
      case 'END':
      case 'EVT':
        // An echo of the controller's own frame.
        return
    }
  }

  #hello({ seq, proto, host }: Extract<Frame, { type: 'HELLO' }>): void {
    this.#queue.send({ type: 'ACK', s: seq })
    if (proto > this.#options.version || proto < OLDEST_SERIAL_VERSION) {
      this.#endSession()
      this.#queue.sendOnce(this.#welcome(host))
      return
    }
    if (host === this.#host) return
    this.#endSession()
    this.#host = host
    this.#spoken = proto
    this.#options.onSession('begun')
    this.#watchHost(host, HOST_SILENT_MS * this.#options.pace)
    this.#queue.send(this.#welcome(host), () => {
      this.#welcomed = true
      this.#options.onSession('on')
      this.#reporter.reportAll()
    })
  }

  #welcome(host: string): { type: 'WELCOME' } & FrameBody<'WELCOME'> {
    const { id, count, owner } = this.#memory
    const last = this.#memory.newest(1)[0]?.op
    const proto = this.#spoken
    const version = { fw: `${SIMULATED_KIND}-${this.#options.slots.build}`, boot: this.boot }
    const { hub, ctl, store } = owner ?? {}
    return { type: 'WELCOME', proto, host, ...version, mem: id, last, count, hub, ctl, store }
  }

  /** Stores the owner. SPEC §8. */
  #own({ seq, hub, ctl, store, wipe }: FrameOf<'OWN'>): void {
    const { owner } = this.#memory
    const isKnown = owner?.hub === hub && owner.ctl === ctl && owner.store === store
    if (this.#host === undefined) return this.#refuse(seq, 'stale_host')
    if (!isKnown && wipe && this.#operations.isAnyRunning()) return this.#refuse(seq, 'busy')
    if (!isKnown && this.#options.isMemoryFaulty()) return this.#refuse(seq, 'memory_fault')
    if (!isKnown) this.#memory.own({ hub, ctl, store }, wipe)
    this.#queue.send({ type: 'ACK', s: seq })
  }

  /** A step of an update of the firmware. SPEC §12. */
  #update(frame: Parameters<Slots['take']>[0]): void {
    const { slots, isMemoryFaulty, reset } = this.#options
    if (this.#host === undefined) return this.#refuse(frame.seq, 'stale_host')
    if (this.#operations.isAnyRunning()) return this.#refuse(frame.seq, 'busy')
    const refusal = isMemoryFaulty() ? 'memory_fault' : slots.take(frame)
    if (refusal) return this.#refuse(frame.seq, refusal)
    this.#queue.send({ type: 'ACK', s: frame.seq })
    if (frame.type === 'USE') reset()
  }

  /** Version 2 cannot express a probe without a reading. */
  #forHost({ temp, ...sensed }: Sensed): Sensed {
    if (temp === undefined || (temp === 'none' && this.#spoken < 3)) return sensed
    return { ...sensed, temp }
  }

  #endSession(): void {
    this.#spoken = this.#options.version
    if (this.#host !== undefined) this.#options.onSession('off')
    this.#host = undefined
    this.#welcomed = false
    this.#refusals.clear()
    this.#queue.clear()
    this.#reporter.pause()
  }

  #watchHost(host: string, delayMs: number): void {
    this.#options.clock.after(delayMs, () => {
      if (this.#host !== host) return
      const { clock, pace } = this.#options
      const leftMs = this.#heardAt + HOST_SILENT_MS * pace - clock.monotonic()
      if (leftMs > 0) this.#watchHost(host, leftMs)
      else this.#endSession()
    })
  }

  /** Acknowledges a request of the present session. */
  #accept(seq: number): boolean {
    if (this.#host === undefined) this.#refuse(seq, 'stale_host')
    else this.#queue.send({ type: 'ACK', s: seq })
    return this.#host !== undefined
  }

  #refuse(seq: number, why: Refusal): void {
    this.#queue.send({ type: 'NAK', s: seq, why })
  }

  /** SPEC §6, step by step. */
  #command(command: Extract<Frame, { type: 'CMD' }>): void {
    const { seq } = command
    if (command.host !== this.#host) return this.#refuse(seq, 'stale_host')
    if (this.#memory.get(command.op)) {
      this.#queue.send({ type: 'ACK', s: seq })
      this.#queue.send({ type: 'RES', ...this.#memory.result(command.op) })
      return
    }
    const refusal = this.#refusals.get(command.op) ?? this.#operations.refusal(command)
    if (refusal) {
      this.#remember(command.op, refusal)
      return this.#refuse(seq, refusal)
    }
    this.#operations.begin(command)
    this.#queue.send({ type: 'ACK', s: seq })
    this.#started(command)
  }

  #started(command: Command): void {
    if (command.act === 'dispense') this.#latest.set(command.dev, { op: command.op, at: Infinity })
    this.#operations.start(command)
  }

  #remember(op: string, refusal: Refusal): void {
    this.#refusals.set(op, refusal)
    for (const oldest of this.#refusals.keys()) {
      if (this.#refusals.size <= REFUSALS_KEPT) return
      this.#refusals.delete(oldest)
    }
  }

  #ended(result: FrameBody<'RES'>): void {
    for (const latest of this.#latest.values())
      if (latest.op === result.op) latest.at = this.#options.clock.monotonic()
    if (this.#host !== undefined) this.#queue.send({ type: 'RES', ...result })
  }

  #fell(device: string, units: number): void {
    if (this.#operations.fell(device, units)) return
    const latest = this.#latest.get(device)
    const known = latest !== undefined && this.#options.clock.monotonic() - latest.at <= LATE_DROP_MS
    const record = known ? this.#memory.get(latest.op) : undefined
    if (record) this.#memory.update(record.op, { drops: record.drops + units })
    this.#reporter.fell(device, units, record?.op)
  }
}

/**
 * The built-in firmware, started on a board; it knows the world only through the board. `version`: of the serial
 * protocol; version 2 reports only changes of temperature.
 */
export function startProgram(
  ask: AskBoard,
  runtime: Runtime,
  version: number = SERIAL_PROTOCOL_VERSION,
  pace = 1,
): Program {
  let firmware: Firmware | undefined
  let pins: Pins
  let isAlive = true
  /** Timers end with this life of the processor. */
  const clock: Clock = {
    now: () => runtime.clock.now(),
    monotonic: () => runtime.clock.monotonic(),
    after: (delayMs, task) => runtime.clock.after(delayMs, () => isAlive && task()),
  }

  function boot(power: Extract<BoardEvent, { on: 'power' }>): void {
    pins = createPins(power.devices, ask)
    const flash = splitFlash(ask, power.flash)
    firmware = new Firmware({
      clock,
      random: runtime.random,
      version,
      pace,
      memory: new OperationMemory(flash.memory, runtime.random),
      slots: new Slots(flash.slots, simulatedPublicKey),
      reset: () => void ask({ do: 'reset' }),
      behaviours: (isRunning) => behavioursOf(power, pins, clock, { isRunning, version, pace }),
      cabinets: [...pins.cabinets.values()],
      isMemoryFaulty: () => !ask({ do: 'flash' }).ok,
      isSupplyWeak: (device) => !ask({ do: 'supply', device }).ok,
      transmit: (line) => void ask({ do: 'send', line }),
      onSession: (shows) => void ask({ do: 'lamp', shows }),
    })
  }

  return {
    event(event) {
      if (event.on === 'power') boot(event)
      else if (event.on === 'line') firmware?.receive(event.line)
      else pins.event(event)
    },
    cut() {
      isAlive = false
      firmware?.cut()
      firmware = undefined
    },
  }
}

function behavioursOf(
  power: Extract<BoardEvent, { on: 'power' }>,
  pins: Pins,
  clock: Clock,
  { isRunning, version, pace }: { isRunning: (device: string) => boolean; version: number; pace: number },
): Map<string, Behaviour> {
  const binOf = (number: number) => pins.bins.get(deviceId({ kind: 'bin', number }))
  return new Map(
    power.devices.map((device) => {
      const id = deviceId(device)
      switch (device.kind) {
        case 'bin':
          return [id, binBehaviour(pins.bins.get(id)!)]
        case 'cabinet': {
          const context = { clock, binOf, isRunning, dropWindowMs: power.drop_window_ms }
          return [id, cabinetBehaviour(pins.cabinets.get(id)!, device, context)]
        }
        case 'fridge':
          return [id, fridgeBehaviour(pins.fridges.get(id)!, clock, version < 3, pace)]
      }
    }),
  )
}
