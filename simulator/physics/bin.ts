import type { Clock } from '../../protocol/model/runtime.ts'
import type { FaultType } from '../faults/fault-types.ts'
import type { ActDetail, BinState } from './world-state.ts'
import { cut, type Chronicle } from './chronicle.ts'
import type { Motion, OnMotionEnd, Timing } from './motion.ts'

type DoorReading = 'closed' | 'open' | 'moving' | 'unknown'
type LiftReading = 'up' | 'down' | 'moving' | 'unknown'
export type BinAction = 'open_door' | 'close_door' | 'raise_lift' | 'lower_lift'

export interface MechanismOptions {
  chronicle: Chronicle
  clock: Clock
  timing: Timing
  strikes: (type: FaultType, device: string) => boolean
  /** Called when a motor was switched on, with its approximate duration. */
  onMotion: (device: string, durationMs: number) => void
}

type Switch = 'door' | 'lift' | 'occupied'

const BOUNCES = 6
const BOUNCE_MS = 33

/** A delivery bin as its controller sees it: switches to read, motors to switch on. */
export class Bin {
  readonly device: string
  readonly #state: BinState
  readonly #options: MechanismOptions
  readonly #listeners = new Set<() => void>()
  #moving: 'door' | 'lift' | undefined
  /** The switch that bounces and shows the wrong side at present. */
  #bouncing: Switch | undefined

  constructor(device: string, state: BinState, options: MechanismOptions) {
    this.device = device
    this.#state = state
    this.#options = options
  }

  door(): DoorReading {
    return this.#reading('door')
  }

  lift(): LiftReading {
    return this.#reading('lift')
  }

  occupied(): boolean {
    return this.#bouncing === 'occupied' ? this.#state.contents.length === 0 : this.#state.contents.length > 0
  }

  /** Switches a motor on. One motor at a time; it runs until its end or `stop`. */
  run(action: BinAction, operationId: string, onEnd: OnMotionEnd): Motion {
    const part = action === 'open_door' || action === 'close_door' ? 'door' : 'lift'
    const { device } = this
    const { chronicle, clock, timing, strikes } = this.#options
    const { door, lift, contents } = this.#state
    if (strikes('jam_without_motion', device)) return standstill(clock, timing, onEnd)
    const to = { open_door: 'open', close_door: 'closed', raise_lift: 'up', lower_lift: 'down' }[action]
    const detail: ActDetail =
      part === 'door' ? { from: door, lift } : { from: lift, door, occupied: contents.length > 0 }
    const slow = strikes('slow_motion', device) ? 4 : 1
    const jammed = strikes('jam', device)
    const obstructed = action === 'close_door' && !jammed && strikes('obstructed_door', device)
    const fullMs = (part === 'door' ? timing.doorMs : timing.liftMs) * slow
    const durationMs = jammed ? fullMs / 2 + timing.stallMs : obstructed ? fullMs * 1.4 : fullMs
    chronicle.began({ device, action, operation_id: operationId, detail })
    this.#moving = part
    const end = (outcome: ActDetail): void => {
      // The present reading of the other switch, as evidence for the interlocks.
      const other = part === 'door' ? { lift: this.#state.lift } : { door: this.#state.door }
      chronicle.happened({ device, action, operation_id: operationId, detail: { ...outcome, ...other } })
      this.#moving = undefined
      this.#changed(part)
    }
    const cancel = clock.after(durationMs, () => {
      if (jammed) end({ ...cut({ action, detail }), jammed: true })
      else if (obstructed) end({ ...detail, to: 'open', obstructed: true, completed: false })
      else end({ ...detail, to, completed: true })
      onEnd(jammed ? 'stalled' : obstructed ? 'obstructed' : 'arrived')
    })
    this.#options.onMotion(device, durationMs)
    this.rewired()
    return {
      stop: () => {
        if (!this.#moving) return
        cancel()
        end(cut({ action, detail }))
      },
      moved: () => true,
    }
  }

  /** A person moves the door by hand, whatever the motor does. */
  forceDoor(to: 'open' | 'closed', action: 'force_open' | 'close_door'): void {
    this.#options.chronicle.happened({
      device: this.device,
      action,
      detail: { from: this.#state.door, to, by: 'hand', lift_moving: this.#moving === 'lift' },
    })
    this.#changed('door')
  }

  /** The light barrier begins or stops to show the wrong side. */
  flicker(isWrong: boolean): void {
    this.#bouncing = isWrong ? 'occupied' : undefined
    this.rewired()
  }

  touched(): void {
    this.#changed('occupied')
  }

  /** Reads the switches again, because faults may have changed the wiring. */
  rewired(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Calls `listener` when a switch may read differently. */
  onSense(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #changed(which: Switch): void {
    this.rewired()
    if (!this.#options.strikes('sensor_bounce', this.device)) return
    for (let bounce = 1; bounce <= BOUNCES; bounce++)
      this.#options.clock.after(bounce * BOUNCE_MS, () => {
        this.#bouncing = bounce % 2 === 1 ? which : undefined
        this.rewired()
      })
  }

  #reading<Part extends 'door' | 'lift'>(
    part: Part,
  ): Exclude<BinState[Part], 'between'> | 'moving' | 'unknown' {
    if (this.#moving === part) return 'moving'
    const position = this.#state[part]
    const isBlind =
      this.#options.strikes('sensor_fault', this.device) || this.#bouncing === part || position === 'between'
    return isBlind ? 'unknown' : (position as Exclude<BinState[Part], 'between'>)
  }
}

/** A motor that has power but does not move. */
export function standstill(clock: Clock, timing: Timing, onEnd: OnMotionEnd): Motion {
  const cancel = clock.after(timing.stallMs, () => onEnd('stalled'))
  return { stop: cancel, moved: () => false }
}
