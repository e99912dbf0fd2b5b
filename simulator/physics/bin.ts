import type { Clock } from '../../protocol/model/runtime.ts'
import type { FaultType } from '../faults/fault-types.ts'
import type { ActDetail, BinState } from './world-state.ts'
import { cut, type Chronicle } from './chronicle.ts'
import type { Motion, OnMotionEnd, Timing } from './motion.ts'

export type DoorReading = 'closed' | 'open' | 'moving' | 'unknown'
export type LiftReading = 'up' | 'down' | 'moving' | 'unknown'
export type BinAction = 'open_door' | 'close_door' | 'raise_lift' | 'lower_lift'

/** A delivery bin as its controller sees it: switches to read, motors to switch on. */
export interface Bin {
  readonly device: string
  door(): DoorReading
  lift(): LiftReading
  /** Something lies in it. */
  occupied(): boolean
  /** Switches a motor on. One motor at a time; it runs until its end or `stop`. */
  run(action: BinAction, operationId: string, onEnd: OnMotionEnd): Motion
  /** Somebody moves the door by hand, past whatever the motor does. */
  forceDoor(to: 'open' | 'closed', action: 'force_open' | 'close_door'): void
  /** Its light barrier shows the wrong side, or the right one again. */
  flicker(isWrong: boolean): void
  /** Its contents changed. */
  touched(): void
  /** Its switches may be wired to others now: they are read again. */
  rewired(): void
  /** Calls `listener` when a switch may read differently. */
  onSense(listener: () => void): () => void
}

export interface MechanismOptions {
  chronicle: Chronicle
  clock: Clock
  timing: Timing
  strikes: (type: FaultType, device: string) => boolean
  /** A motor was switched on, for about this long. */
  onMotion: (device: string, durationMs: number) => void
}

type Switch = 'door' | 'lift' | 'occupied'

const BOUNCES = 6
const BOUNCE_MS = 33

export function createBin(device: string, state: BinState, options: MechanismOptions): Bin {
  const { chronicle, clock, timing, strikes } = options
  const listeners = new Set<() => void>()
  let moving: 'door' | 'lift' | undefined
  /** The switch that flutters, and shows the wrong side just now. */
  let flutter: Switch | undefined

  function sense(): void {
    for (const listener of listeners) listener()
  }

  function changed(which: Switch): void {
    sense()
    if (!strikes('sensor_bounce', device)) return
    for (let bounce = 1; bounce <= BOUNCES; bounce++)
      clock.after(bounce * BOUNCE_MS, () => {
        flutter = bounce % 2 === 1 ? which : undefined
        sense()
      })
  }

  function run(action: BinAction, operationId: string, onEnd: OnMotionEnd): Motion {
    const part = action === 'open_door' || action === 'close_door' ? 'door' : 'lift'
    if (strikes('jam_without_motion', device)) return standstill(clock, timing, onEnd)
    const to = { open_door: 'open', close_door: 'closed', raise_lift: 'up', lower_lift: 'down' }[action]
    const detail: ActDetail =
      part === 'door'
        ? { from: state.door, lift: state.lift }
        : { from: state.lift, door: state.door, occupied: state.contents.length > 0 }
    const slow = strikes('slow_motion', device) ? 4 : 1
    const jammed = strikes('jam', device)
    const obstructed = action === 'close_door' && !jammed && strikes('obstructed_door', device)
    const fullMs = (part === 'door' ? timing.doorMs : timing.liftMs) * slow
    const durationMs = jammed ? fullMs / 2 + timing.stallMs : obstructed ? fullMs * 1.4 : fullMs
    chronicle.began({ device, action, operation_id: operationId, detail })
    moving = part
    const cancel = clock.after(durationMs, () => {
      if (jammed) end({ ...cut({ action, detail }), jammed: true })
      else if (obstructed) end({ ...detail, to: 'open', obstructed: true, completed: false })
      else end({ ...detail, to, completed: true })
      onEnd(jammed ? 'stalled' : obstructed ? 'obstructed' : 'arrived')
    })
    function end(outcome: ActDetail): void {
      // The other door or lift switch as it is now: the witness of the interlocks.
      const other = part === 'door' ? { lift: state.lift } : { door: state.door }
      chronicle.happened({ device, action, operation_id: operationId, detail: { ...outcome, ...other } })
      moving = undefined
      changed(part)
    }
    options.onMotion(device, durationMs)
    sense()
    return {
      stop() {
        if (!moving) return
        cancel()
        end(cut({ action, detail }))
      },
      moved: () => true,
    }
  }

  function reading<Part extends 'door' | 'lift'>(
    part: Part,
  ): Exclude<BinState[Part], 'between'> | 'moving' | 'unknown' {
    if (moving === part) return 'moving'
    const position = state[part]
    const isBlind = strikes('sensor_fault', device) || flutter === part || position === 'between'
    return isBlind ? 'unknown' : (position as Exclude<BinState[Part], 'between'>)
  }

  return {
    device,
    door: () => reading('door'),
    lift: () => reading('lift'),
    occupied: () => (flutter === 'occupied' ? state.contents.length === 0 : state.contents.length > 0),
    run,
    forceDoor(to, action) {
      chronicle.happened({
        device,
        action,
        detail: { from: state.door, to, by: 'hand', lift_moving: moving === 'lift' },
      })
      changed('door')
    },
    flicker(isWrong) {
      flutter = isWrong ? 'occupied' : undefined
      sense()
    },
    touched: () => changed('occupied'),
    rewired: sense,
    onSense(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** A motor that is powered and stays where it is. */
export function standstill(clock: Clock, timing: Timing, onEnd: OnMotionEnd): Motion {
  const cancel = clock.after(timing.stallMs, () => onEnd('stalled'))
  return { stop: cancel, moved: () => false }
}
