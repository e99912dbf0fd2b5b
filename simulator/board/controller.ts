import { deviceId, type ControllerDescription } from '../../protocol/model/hardware.ts'
import { crossed } from '../faults/line-faults.ts'
import type { FaultType } from '../faults/fault-types.ts'
import type { Bin, BinAction } from '../physics/bin.ts'
import type { Motion, OnMotionEnd } from '../physics/motion.ts'
import { uuidOfOp } from '../../protocol/serial/codec.ts'
import type { World } from '../physics/world.ts'
import type { AppendLog } from '../storage/append-log.ts'
import {
  BOARD_PROTOCOL_VERSION,
  type AskBoard,
  type BoardEvent,
  type BoardReplies,
  type BoardRequest,
  type Program,
} from './messages.ts'

export interface ControllerOptions {
  description: ControllerDescription
  world: World
  /** What is written into the flash. */
  memory: AppendLog<object>
  strikes: (type: FaultType, target: string) => boolean
  /** How long a fall is waited for after a turn, in milliseconds. */
  dropWindowMs: number
  /** A line to the host, without its line feed. */
  transmit: (line: string) => void
  /** Starts the firmware that is built in; undefined: the firmware is a program that is plugged in. */
  start: ((ask: AskBoard) => Program) | undefined
}

/** What the firmware asked makes no sense: nothing was done. */
export class BoardError extends Error {}

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
  const { description, world, memory, strikes } = options
  const devices = new Set(description.devices.map(deviceId))
  const binNames = description.devices.filter(({ kind }) => kind === 'bin').map(deviceId)
  const motions = new Map<string, Motion>()
  let program: Program | undefined
  let plugged: Program | undefined
  let isPowered = false
  let lamp: 'off' | 'begun' | 'on' = 'off'
  let sessions = 0
  let release = (): void => {}

  /** The bins at the board's terminals, in their order: a cable may be in another's place. */
  const binsAtTerminals = (): string[] =>
    crossed(
      binNames,
      binNames.filter((name) => strikes('crossed_bins', name)),
    )
  const binOf = (device: string): Bin | undefined =>
    world.bins.get(binsAtTerminals()[binNames.indexOf(device)] ?? device)
  const terminalOf = (bin: string): string => binNames[binsAtTerminals().indexOf(bin)] ?? bin

  const tell = (event: BoardEvent): void => program?.event(event)

  function listen(): () => void {
    const removals = [...devices].flatMap((device) => [
      world.bins.get(device)?.onSense(() => tell({ on: 'sense', device: terminalOf(device) })),
      world.cabinets.get(device)?.onDrop((units) => tell({ on: 'drop', device, units })),
    ])
    return () => {
      for (const remove of removals) remove?.()
    }
  }

  function stop(device: string): boolean {
    const motion = motions.get(device)
    motions.delete(device)
    motion?.stop()
    return motion?.moved() ?? false
  }

  function begin(next: Program): void {
    program = next
    release = listen()
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
    for (const device of motions.keys()) stop(device)
  }

  function run({
    device,
    action,
    op,
    shelf = 0,
    row = 0,
    bin = 0,
  }: Extract<BoardRequest, { do: 'run' }>): object {
    const onEnd: OnMotionEnd = (how) => {
      motions.delete(device)
      tell({ on: 'end', device, end: how, moved: motion.moved() })
    }
    stop(device)
    const motion = start()
    motions.set(device, motion)
    return {}

    function start(): Motion {
      if (action === 'dispense')
        return known(world.cabinets.get(device), device).turn({ shelf, row, bin }, uuidOfOp(op), onEnd)
      return known(binOf(device), device).run(action satisfies BinAction, uuidOfOp(op), onEnd)
    }
  }

  function read({ device, pin }: Extract<BoardRequest, { do: 'read' }>): BoardReplies['read'] {
    if (pin === 'temp') return { value: known(world.fridges.get(device), device).celsius() }
    const bin = known(binOf(device), device)
    return { value: pin === 'door' ? bin.door() : pin === 'lift' ? bin.lift() : bin.occupied() }
  }

  const known = <T>(thing: T | undefined, device: string): T => {
    if (thing === undefined || !devices.has(device))
      throw new BoardError(`${device} is not on this board, or cannot do that`)
    return thing
  }

  function answer(request: BoardRequest): BoardReplies[BoardRequest['do']] {
    if (!isPowered && request.do !== 'stop') throw new BoardError('the board has no power')
    switch (request.do) {
      case 'read':
        return read(request)
      case 'run':
        return run(request)
      case 'stop':
        return { moved: stop(request.device) }
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
