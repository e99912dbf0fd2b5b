import type { DeviceDescription } from '../../protocol/model/hardware.ts'
import { type Clock, every } from '../../protocol/model/runtime.ts'
import { uuidOfOp } from '../../protocol/serial/codec.ts'
import type { Action, Failure, FrameBody, Refusal } from '../../protocol/serial/frames.ts'
import type { BinAction } from '../physics/bin.ts'
import type { BinPins, CabinetPins, FridgePins } from './pins.ts'

export type Command = FrameBody<'CMD'>
/** The sensor values of a device, as fields of its EVT. */
export type Sensed = Omit<FrameBody<'EVT'>, 'ev' | 'dev' | 'drop' | 'op'>

/** A running operation, as its device sees it. */
export interface Run {
  readonly command: Command
  /** Falls that the sensor has seen since the operation started. */
  drops(): number
  /** The motor is off: its duration is measured, and the maximum no longer counts. */
  motorOff(): void
  /** Ends the operation. Later calls do nothing. */
  finish(outcome: { why?: Failure; moved: boolean }): void
}

/** The capabilities of one kind of device. The controller knows nothing else about it. */
export interface Behaviour {
  readonly device: string
  readonly actions: readonly Action[]
  /** Why the command is refused now; undefined if it can run. */
  refusal(command: Command): Refusal | undefined
  /** The device is already in the position that the command asks for. */
  isThere(command: Command): boolean
  /** Switches the motor on. Returns a function that switches it off. */
  start(run: Run): () => void
  sensed(): Sensed
  /** The controller reports a value each time the device notifies, even if it has not changed (SPEC §9). */
  repeats?: true
  /** Calls `listener` when `sensed` may have changed; returns a function that removes it. */
  onSense(listener: () => void): () => void
}

const goal = { open_door: 'open', close_door: 'closed', raise_lift: 'up', lower_lift: 'down' } as const

const isDoor = (action: Command['act']): boolean => action === 'open_door' || action === 'close_door'

/** A delivery bin: a door, a lift, and the interlock between them (SPEC §6). */
export function binBehaviour(bin: BinPins): Behaviour {
  const reading = (action: BinAction): string => (isDoor(action) ? bin.door() : bin.lift())

  function start(run: Run): () => void {
    const action = run.command.act as BinAction
    const motion = bin.run(action, uuidOfOp(run.command.op), (end) => {
      release()
      run.motorOff()
      const moved = motion.moved()
      if (end === 'stalled') run.finish({ why: 'jam', moved })
      else if (end === 'obstructed') run.finish({ why: 'obstructed', moved })
      else if (reading(action) === goal[action]) run.finish({ moved })
      else run.finish({ why: 'sensor_fault', moved })
    })
    const release = isDoor(action)
      ? () => {}
      : bin.onSense(() => {
          if (bin.door() === 'closed') return
          release()
          motion.stop()
          run.motorOff()
          run.finish({ why: 'interlock', moved: motion.moved() })
        })
    return () => {
      release()
      motion.stop()
    }
  }

  return {
    device: bin.device,
    actions: ['open_door', 'close_door', 'raise_lift', 'lower_lift'],
    refusal: ({ act }) => (!isDoor(act) && bin.door() !== 'closed' ? 'interlock' : undefined),
    isThere: ({ act }) => reading(act as BinAction) === goal[act as BinAction],
    start,
    sensed: () => ({ door: bin.door(), lift: bin.lift(), occ: bin.occupied() }),
    onSense: (listener) => bin.onSense(listener),
  }
}

type CabinetDescription = Extract<DeviceDescription, { kind: 'cabinet' }>

interface CabinetContext {
  clock: Clock
  /** A bin on the same controller. */
  binOf(number: number): BinPins | undefined
  isRunning(device: string): boolean
  /** How long the controller waits for a fall after the turn (SPEC §6). */
  dropWindowMs: number
}

/** A cabinet of vending rows: one turn of a row, with or without a seen fall. */
export function cabinetBehaviour(
  cabinet: CabinetPins,
  description: CabinetDescription,
  context: CabinetContext,
): Behaviour {
  const { clock, dropWindowMs } = context

  function refusal({ shelf, row, bin }: Command): Refusal | undefined {
    const rows = description.shelves.find((one) => one.shelf === shelf)?.rows ?? 0
    if (row === undefined || row < 1 || row > rows || !bin) return 'bad_argument'
    const target = context.binOf(bin)
    if (!target) return undefined
    if (context.isRunning(target.device)) return 'busy'
    return target.door() === 'closed' && target.lift() === 'down' ? undefined : 'interlock'
  }

  function start(run: Run): () => void {
    const { shelf, row, bin, op } = run.command
    let cancelWindow = (): void => {}
    const motion = cabinet.turn({ shelf: shelf!, row: row!, bin: bin! }, uuidOfOp(op), (end) => {
      run.motorOff()
      const moved = motion.moved()
      const why = end === 'arrived' ? 'no_drop' : 'jam'
      if (!moved) run.finish({ why, moved })
      else if (end === 'arrived' && run.drops() > 0) run.finish({ moved })
      else
        cancelWindow = clock.after(dropWindowMs, () =>
          run.finish(end === 'arrived' && run.drops() > 0 ? { moved } : { why, moved }),
        )
    })
    return () => {
      cancelWindow()
      motion.stop()
    }
  }

  return {
    device: cabinet.device,
    actions: ['dispense'],
    refusal,
    isThere: () => false,
    start,
    sensed: () => ({}),
    onSense: () => () => {},
  }
}

const READ_EVERY_MS = 5000
/** A steady value is repeated after this time; the SPEC (§9) requires once a minute. */
const REPEAT_MS = 10_000
/** Hundredths of a degree. */
const WORTH_REPORTING = 10

/**
 * A fridge with a probe that is read at intervals; its doors are on GPIO lines. `onlyChanges`: like firmware of version
 * 2, which neither repeats a steady value nor reports a missing reading.
 */
export function fridgeBehaviour(
  fridge: FridgePins,
  clock: Clock,
  onlyChanges: boolean,
  pace: number,
): Behaviour {
  const read = (): number | 'none' => {
    const celsius = fridge.probe()
    return celsius === null ? 'none' : Math.round(celsius * 100) + 10_000
  }
  let reported = read()
  let reportedAt = clock.monotonic()

  function isNews(temperature: number | 'none'): boolean {
    if (!onlyChanges && clock.monotonic() - reportedAt >= REPEAT_MS * pace) return true
    if (temperature === 'none') return !onlyChanges && reported !== 'none'
    return reported === 'none' || Math.abs(temperature - reported) >= WORTH_REPORTING
  }

  return {
    device: fridge.device,
    actions: [],
    refusal: () => 'unsupported',
    isThere: () => false,
    start: () => () => {},
    sensed: () => (onlyChanges && reported === 'none' ? {} : { temp: reported }),
    repeats: true,
    onSense: (listener) =>
      every(clock, READ_EVERY_MS * pace, () => {
        const temperature = read()
        if (!isNews(temperature)) return
        reported = temperature
        reportedAt = clock.monotonic()
        listener()
      }),
  }
}
