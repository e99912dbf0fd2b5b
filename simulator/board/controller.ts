import { type ControllerDescription, deviceId } from '../../protocol/model/hardware.ts'
import type { AppendLog } from '../storage/append-log.ts'
import {
  BOARD_PROTOCOL_VERSION,
  BoardError,
  type AskBoard,
  type BoardEvent,
  type BoardReplies,
  type BoardRequest,
  type Program,
} from './messages.ts'
import { uuidOfOp } from '../../protocol/serial/codec.ts'
import type { FaultType } from '../faults/fault-types.ts'
import { crossed } from '../faults/line-faults.ts'
import type { Bin } from '../physics/bin.ts'
import type { Motion, OnMotionEnd } from '../physics/motion.ts'
import type { World } from '../physics/world.ts'

interface ControllerOptions extends TerminalsOptions {
  /** The contents of the flash. */
  memory: AppendLog<object>
  /** How long the firmware waits for a fall after a turn, in milliseconds. */
  dropWindowMs: number
  /** A line to the host, without its line feed. */
  transmit: (line: string) => void
  /** Cuts the power for a moment, as the reset button does. */
  reset: () => void
  /** Starts the built-in firmware; undefined: the firmware is an external program. */
  start: ((ask: AskBoard) => Program) | undefined
}

/** A microcontroller on its board: power, flash, pins, and the program that runs while there is power. */
export class Controller {
  readonly id: string
  readonly description: ControllerDescription
  /** Its firmware is an external program; false: the built-in firmware. */
  readonly isOpen: boolean
  /** The requests of the running program. */
  readonly ask: AskBoard
  readonly #options: ControllerOptions
  readonly #terminals: Terminals
  #program: Program | undefined
  #plugged: Program | undefined
  #isPowered = false
  #lamp: 'off' | 'begun' | 'on' = 'off'
  #sessions = 0
  #release = (): void => {}

  constructor(options: ControllerOptions) {
    this.#options = options
    this.description = options.description
    this.id = options.description.id
    this.isOpen = options.start === undefined
    this.#terminals = new Terminals(options, (event) => this.#emit(event))
    this.ask = ((request: BoardRequest) => this.#answer(request)) as AskBoard
  }

  get isPowered(): boolean {
    return this.#isPowered
  }

  /** One of its motors runs. */
  get isMoving(): boolean {
    return this.#terminals.isMoving
  }

  /** A host has a session, as the board's lamp shows it. */
  get hasSession(): boolean {
    return this.#lamp === 'on'
  }

  /** Sessions that hosts have started since the simulator's start. */
  get sessions(): number {
    return this.#sessions
  }

  powerOn(): void {
    if (this.#isPowered) return
    this.#isPowered = true
    const next = this.#options.start?.(this.ask) ?? this.#plugged
    if (next) this.#start(next)
  }

  /** Motors stop where they are; RAM is lost. */
  powerOff(): void {
    if (!this.#isPowered) return
    this.#isPowered = false
    const former = this.#program
    this.#halt()
    former?.cut()
  }

  /** Replaces the board by a board with these flash contents; empty: a new board. Only while it has no power. */
  replaceMemory(contents: readonly object[]): void {
    this.#options.memory.replace(contents)
  }

  /** The contents of the flash, oldest first. */
  flash(): readonly object[] {
    return this.#options.memory.read()
  }

  /** Receives a line from the host. The line is lost if there is no power. */
  receive(line: string): void {
    this.#emit({ on: 'line', line })
  }

  /** Runs a program instead of the firmware, when there is power. Returns the function that removes it. */
  plug(next: Program): () => void {
    // The latest program has the board, like the latest program that opened a port.
    if (this.#program) {
      const former = this.#program
      this.#halt()
      former.cut()
    }
    this.#plugged = next
    if (this.#isPowered) this.#start(next)
    return () => {
      if (this.#plugged !== next) return
      this.#plugged = undefined
      if (this.#program === next) this.#halt()
    }
  }

  #emit(event: BoardEvent): void {
    this.#program?.event(event)
  }

  #start(next: Program): void {
    this.#program = next
    this.#release = this.#terminals.listen()
    this.#emit({
      on: 'power',
      protocol: BOARD_PROTOCOL_VERSION,
      controller: this.description.id,
      devices: this.description.devices,
      drop_window_ms: this.#options.dropWindowMs,
      flash: this.#options.memory.read(),
    })
  }

  /** Outputs of a processor that does not run are off (I7). */
  #halt(): void {
    this.#release()
    this.#program = undefined
    this.#lamp = 'off'
    this.#terminals.stopAll()
  }

  #answer(request: BoardRequest): BoardReplies[BoardRequest['do']] {
    if (!this.#isPowered && request.do !== 'stop') throw new BoardError('the board has no power')
    switch (request.do) {
      case 'read':
        return this.#terminals.read(request)
      case 'run':
        this.#terminals.run(request)
        return {}
      case 'stop':
        return { moved: this.#terminals.stop(request.device) }
      case 'supply':
        return { ok: !this.#options.strikes('weak_supply', request.device) }
      case 'flash':
        return { ok: !this.#options.strikes('flash_fault', this.description.id) }
      case 'append':
        this.#options.memory.append(request.entry)
        return {}
      case 'replace':
        this.#options.memory.replace(request.entries)
        return {}
      case 'send':
        this.#options.transmit(request.line)
        return {}
      case 'lamp':
        if (request.shows === 'begun') this.#sessions++
        this.#lamp = request.shows
        return {}
      case 'reset':
        this.#options.reset()
        return {}
    }
  }
}

interface TerminalsOptions {
  description: ControllerDescription
  world: World
  strikes: (type: FaultType, target: string) => boolean
}

/** The devices at a board's terminals as its firmware reaches them: sensors and motors. */
class Terminals {
  readonly #world: World
  readonly #strikes: TerminalsOptions['strikes']
  readonly #report: (event: BoardEvent) => void
  readonly #devices: ReadonlySet<string>
  readonly #bins: readonly string[]
  /** The running motors, by device. */
  readonly #motions = new Map<string, Motion>()

  constructor({ description, world, strikes }: TerminalsOptions, report: (event: BoardEvent) => void) {
    this.#world = world
    this.#strikes = strikes
    this.#report = report
    this.#devices = new Set(description.devices.map(deviceId))
    this.#bins = description.devices.filter(({ kind }) => kind === 'bin').map(deviceId)
  }

  read({ device, pin }: Extract<BoardRequest, { do: 'read' }>): BoardReplies['read'] {
    if (pin === 'temp') return { value: this.#known(this.#world.fridges.get(device), device).probe() }
    const bin = this.#known(this.#binAt(device), device)
    return { value: pin === 'door' ? bin.door() : pin === 'lift' ? bin.lift() : bin.occupied() }
  }

  /** Switches a device's motor on; its former motion stops. */
  run(request: Extract<BoardRequest, { do: 'run' }>): void {
    const { device } = request
    this.stop(device)
    const motion = this.#start(request, (end) => {
      this.#motions.delete(device)
      this.#report({ on: 'end', device, end, moved: motion.moved() })
    })
    this.#motions.set(device, motion)
  }

  #start(
    { device, action, op, shelf = 0, row = 0, bin = 0 }: Extract<BoardRequest, { do: 'run' }>,
    onEnd: OnMotionEnd,
  ): Motion {
    if (action === 'dispense')
      return this.#known(this.#world.cabinets.get(device), device).turn(
        { shelf, row, bin },
        uuidOfOp(op),
        onEnd,
      )
    return this.#known(this.#binAt(device), device).run(action, uuidOfOp(op), onEnd)
  }

  get isMoving(): boolean {
    return this.#motions.size > 0
  }

  /** Stops a motor. Returns whether it had moved. */
  stop(device: string): boolean {
    const motion = this.#motions.get(device)
    this.#motions.delete(device)
    motion?.stop()
    return motion?.moved() ?? false
  }

  stopAll(): void {
    for (const device of this.#motions.keys()) this.stop(device)
  }

  /** Reports the events of sensors. Returns a function that ends this. */
  listen(): () => void {
    const removals = [...this.#devices].flatMap((device) => [
      this.#world.bins
        .get(device)
        ?.onSense(() => this.#report({ on: 'sense', device: this.#terminalOf(device) })),
      this.#world.cabinets.get(device)?.onDrop((units) => this.#report({ on: 'drop', device, units })),
    ])
    return () => {
      for (const remove of removals) remove?.()
    }
  }

  /** The bins in the order of the board's terminals: cables may be swapped. */
  #binsInOrder(): string[] {
    return crossed(
      this.#bins,
      this.#bins.filter((name) => this.#strikes('crossed_bins', name)),
    )
  }

  #binAt(device: string): Bin | undefined {
    return this.#world.bins.get(this.#binsInOrder()[this.#bins.indexOf(device)] ?? device)
  }

  #terminalOf(bin: string): string {
    return this.#bins[this.#binsInOrder().indexOf(bin)] ?? bin
  }

  #known<T>(thing: T | undefined, device: string): T {
    if (thing === undefined || !this.#devices.has(device))
      throw new BoardError(`${device} is not on this board, or cannot do that`)
    return thing
  }
}
