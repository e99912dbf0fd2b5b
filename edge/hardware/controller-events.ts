import { uuidOfOp } from '../../protocol/serial/codec.ts'
import type {
  Action,
  Failure,
  FrameBody,
  FrameOf,
  OperationState,
  Owner,
  Refusal,
} from '../../protocol/serial/frames.ts'
import type { CommandRefusal, FirmwareRequest } from './link-state.ts'

/** The outcome of an operation in the controller's memory. SPEC §7. */
export interface OperationOutcome {
  operationId: string
  state: OperationState
  why: Failure | undefined
  /** False only if the controller knows that nothing moved. */
  moved: boolean
  /** Drops that the drop sensor counted. */
  drops: number
  /** Milliseconds of motion. */
  ms: number
}

/** An operation in a controller's listing of its memory. */
export interface StoredOperation extends OperationOutcome {
  device: string
  action: Action
  shelf?: number
  row?: number
  bin?: number
  ref?: string
}

/** A device's report. Only reported fields are present. */
export interface DeviceEvent {
  device: string
  /**
   * Identifies an event: the same when the event is repeated, also after a restart of the hub's service;
   * unique otherwise.
   */
  eventId?: string
  door?: 'closed' | 'open' | 'moving' | 'unknown'
  lift?: 'up' | 'down' | 'moving' | 'unknown'
  occupied?: boolean
  /** For a fridge: degrees Celsius; null if its probe gives no reading. */
  celsius?: number | null
  /** Units that fell outside any running operation, or after its result. */
  drop?: number
  /** The operation of `drop`, if the controller knows it. */
  operationId?: string
}

/** A controller's identity, as reported on this connection. */
export interface ControllerIdentity {
  /** Changes with every start of the controller. */
  bootId: string
  /** Changes when its memory of operations was lost. */
  memoryId: string
  /** The controller's version of the serial protocol. */
  protocol: number
  /** The newest operation in its memory. */
  lastOperation: string | null
  /** Operations in its memory. */
  stored: number
  firmware: string
  /** The owner stored in the controller; null if it has none. */
  owner: Owner | null
}

/**
 * The links' reports to the core, called synchronously. A frame is acknowledged only after its handler has
 * returned. If the handler throws, the frame stays unacknowledged, and the controller repeats it.
 */
export interface ControllerEvents {
  onUp(controllerId: string, identity: ControllerIdentity): void
  /** `boot`: the new boot id, if the controller restarted on the open line. */
  onDown(controllerId: string, reason: string, boot?: string): void
  onResult(controllerId: string, outcome: OperationOutcome): void
  /** A command was refused: nothing moved, and the command is not in the controller's memory. */
  onRefused(controllerId: string, operationId: string, why: CommandRefusal): void
  /** The answer to `list`, oldest first. */
  onListed(controllerId: string, operations: StoredOperation[]): void
  onDevice(controllerId: string, event: DeviceEvent): void
  /** The answer to FWQ (SPEC §12). */
  onFirmware?(controllerId: string, firmware: FrameBody<'FW'>): void
  /** The controller took a request of SPEC §12, or refused it (`why`). */
  onAnswered?(controllerId: string, request: FirmwareRequest, why: Refusal | undefined): void
}

export const identityOf = ({ hub, ctl, store, ...frame }: FrameOf<'WELCOME'>): ControllerIdentity => ({
  bootId: frame.boot,
  memoryId: frame.mem,
  protocol: frame.proto,
  lastOperation: frame.last === undefined ? null : uuidOfOp(frame.last),
  stored: frame.count,
  firmware: frame.fw,
  owner: hub === undefined || ctl === undefined || store === undefined ? null : { hub, ctl, store },
})

export const outcomeOf = ({
  op,
  state,
  why,
  moved,
  drops,
  ms,
}: FrameOf<'RES' | 'OPS'>): OperationOutcome => ({
  operationId: uuidOfOp(op),
  state,
  why,
  moved,
  drops,
  ms,
})

export function storedOf(frame: FrameOf<'OPS'>): StoredOperation {
  const { dev, act, shelf, row, bin, ref } = frame
  return {
    ...outcomeOf(frame),
    device: dev,
    action: act,
    ...(shelf !== undefined && { shelf }),
    ...(row !== undefined && { row }),
    ...(bin !== undefined && { bin }),
    ...(ref !== undefined && { ref }),
  }
}

/** `boot`: numbers of events are unique within one boot of the controller. */
export function deviceEventOf(frame: FrameOf<'EVT'>, boot: string): DeviceEvent {
  const { ev, dev, door, lift, occ, temp, drop, op } = frame
  return {
    device: dev,
    eventId: `${boot}.${ev}`,
    ...(door && { door }),
    ...(lift && { lift }),
    ...(occ !== undefined && { occupied: occ }),
    // Hundredths of a degree, offset by 10000 (SPEC §9).
    ...(temp !== undefined && { celsius: temp === 'none' ? null : (temp - 10_000) / 100 }),
    ...(drop !== undefined && { drop }),
    ...(op !== undefined && { operationId: uuidOfOp(op) }),
  }
}
