import { deviceId, type ControllerDescription } from '../../protocol/model/hardware.ts'
import { uuidOfOp } from '../../protocol/serial/codec.ts'
import type { FaultType } from '../faults/fault-types.ts'
import { crossed } from '../faults/line-faults.ts'
import type { Bin } from '../physics/bin.ts'
import type { Motion, OnMotionEnd } from '../physics/motion.ts'
import type { World } from '../physics/world.ts'
import { BoardError, type BoardEvent, type BoardReplies, type BoardRequest } from './messages.ts'

export interface TerminalsOptions {
  description: ControllerDescription
  world: World
  strikes: (type: FaultType, target: string) => boolean
}

/** The devices at a board's terminals as its firmware reaches them: sensors and motors. */
export class Terminals {
  readonly #world: World
  readonly #strikes: TerminalsOptions['strikes']
  readonly #tell: (event: BoardEvent) => void
  readonly #devices: ReadonlySet<string>
  readonly #bins: readonly string[]
  /** The running motors, by device. */
  readonly #motions = new Map<string, Motion>()

  constructor({ description, world, strikes }: TerminalsOptions, tell: (event: BoardEvent) => void) {
    this.#world = world
    this.#strikes = strikes
    this.#tell = tell
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
      this.#tell({ on: 'end', device, end, moved: motion.moved() })
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
        ?.onSense(() => this.#tell({ on: 'sense', device: this.#terminalOf(device) })),
      this.#world.cabinets.get(device)?.onDrop((units) => this.#tell({ on: 'drop', device, units })),
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
