import type { ControllerDescription } from '../../protocol/model/hardware.ts'
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
import { Terminals, type TerminalsOptions } from './terminals.ts'

export interface ControllerOptions extends TerminalsOptions {
  /** The contents of the flash. */
  memory: AppendLog<object>
  /** How long the firmware waits for a fall after a turn, in milliseconds. */
  dropWindowMs: number
  /** A line to the host, without its line feed. */
  transmit: (line: string) => void
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

  /** Replaces the board with one that has these flash contents; empty: a new board. Only while it has no power. */
  replaceMemory(contents: readonly object[]): void {
    this.#options.memory.replace(contents)
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
    }
  }
}
