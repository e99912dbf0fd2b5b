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
  /** What is written into the flash. */
  memory: AppendLog<object>
  /** How long a fall is waited for after a turn, in milliseconds. */
  dropWindowMs: number
  /** A line to the host, without its line feed. */
  transmit: (line: string) => void
  /** Starts the firmware that is built in; undefined: the firmware is a program that is plugged in. */
  start: ((ask: AskBoard) => Program) | undefined
}

/** A microcontroller on its board: power, flash, pins, and the program that runs while there is power. */
export interface Controller {
  readonly id: string
  readonly description: ControllerDescription
  readonly isPowered: boolean
  /** Its firmware is another program's; false: the one that is built in. */
  readonly isOpen: boolean
  /** A host has a session, as the board's lamp shows it. */
  readonly hasSession: boolean
  /** Sessions that hosts have begun, since the simulator's start. */
  readonly sessions: number
  powerOn(): void
  /** Motors stop where they are; RAM is lost. */
  powerOff(): void
  /** Another board takes its place, whose flash holds this; none: a new one. Only while it has no power. */
  replaceMemory(contents: readonly object[]): void
  /** A line from the host. Lost where there is no power. */
  receive(line: string): void
  /** A program in the place of the firmware; it starts when there is power. Returns how it is taken away. */
  plug(program: Program): () => void
  /** For the program that runs. */
  readonly ask: AskBoard
}

export function createController(options: ControllerOptions): Controller {
  const { description, memory, strikes } = options
  const terminals = new Terminals(options, tell)
  let program: Program | undefined
  let plugged: Program | undefined
  let isPowered = false
  let lamp: 'off' | 'begun' | 'on' = 'off'
  let sessions = 0
  let release = (): void => {}

  function tell(event: BoardEvent): void {
    program?.event(event)
  }

  function begin(next: Program): void {
    program = next
    release = terminals.listen()
    tell({
      on: 'power',
      protocol: BOARD_PROTOCOL_VERSION,
      controller: description.id,
      devices: description.devices,
      drop_window_ms: options.dropWindowMs,
      flash: memory.read(),
    })
  }

  /** Outputs of a processor that does not run are off (I7). */
  function end(): void {
    release()
    program = undefined
    lamp = 'off'
    terminals.stopAll()
  }

  function answer(request: BoardRequest): BoardReplies[BoardRequest['do']] {
    if (!isPowered && request.do !== 'stop') throw new BoardError('the board has no power')
    switch (request.do) {
      case 'read':
        return terminals.read(request)
      case 'run':
        terminals.run(request)
        return {}
      case 'stop':
        return { moved: terminals.stop(request.device) }
      case 'supply':
        return { ok: !strikes('weak_supply', request.device) }
      case 'flash':
        return { ok: !strikes('flash_fault', description.id) }
      case 'append':
        memory.append(request.entry)
        return {}
      case 'replace':
        memory.replace(request.entries)
        return {}
      case 'send':
        options.transmit(request.line)
        return {}
      case 'lamp':
        if (request.shows === 'begun') sessions++
        lamp = request.shows
        return {}
    }
  }
  const ask = answer as AskBoard

  return {
    id: description.id,
    description,
    get isPowered() {
      return isPowered
    },
    isOpen: options.start === undefined,
    get hasSession() {
      return lamp === 'on'
    },
    get sessions() {
      return sessions
    },
    powerOn() {
      if (isPowered) return
      isPowered = true
      const next = options.start?.(ask) ?? plugged
      if (next) begin(next)
    },
    powerOff() {
      if (!isPowered) return
      isPowered = false
      const former = program
      end()
      former?.cut()
    },
    replaceMemory: (contents) => memory.replace(contents),
    receive: (line) => tell({ on: 'line', line }),
    plug(next) {
      // The latest has the board, as the latest opener of a port has the line.
      if (program) {
        const former = program
        end()
        former.cut()
      }
      plugged = next
      if (isPowered) begin(next)
      return () => {
        if (plugged !== next) return
        plugged = undefined
        if (program === next) end()
      }
    },
    ask,
  }
}
