import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { Action, Failure, OperationState, Refusal } from '../../protocol/serial/frames.ts'
import type { OpenLinePort } from '../../protocol/serial/line-port.ts'

/** One actuation, as the core asks for it. The intent is journaled before (I1). */
export interface ActuationRequest {
  /** A UUIDv7, the operation's identity for ever (I1). */
  operationId: string
  /** `bin-1`, `cabinet-2`: the device that moves. */
  device: string
  action: Action
  /** The controller ends the motion by itself after this long (I7). Milliseconds, at most 600 000. */
  maxMs: number
  shelf?: number
  row?: number
  /** The bin that a dispensed unit falls into. */
  bin?: number
  /** A note that the controller keeps with the operation: 1–40 characters of `A-Za-z0-9_.:+-`. */
  ref?: string
}

/** What became of an operation, as the controller's memory has it. SPEC §7. */
export interface OperationOutcome {
  operationId: string
  state: OperationState
  why: Failure | undefined
  /** False only where the controller knows that nothing moved. */
  moved: boolean
  /** Units that the drop sensor saw fall. */
  drops: number
  /** Milliseconds of motion. */
  ms: number
}

/** An operation as a controller lists its memory. */
export interface StoredOperation extends OperationOutcome {
  device: string
  action: Action
  shelf?: number
  row?: number
  bin?: number
  ref?: string
}

/** What a device says of itself. Only what is reported is present. */
export interface DeviceEvent {
  device: string
  door?: 'closed' | 'open' | 'moving' | 'unknown'
  lift?: 'up' | 'down' | 'moving' | 'unknown'
  occupied?: boolean
  celsius?: number
  /** Units that fell outside any running operation, or after its result. */
  drop?: number
  /** The operation that `drop` belongs to, where the controller knows. */
  operationId?: string
}

/** Who a controller is, as it said on this connection. */
export interface ControllerIdentity {
  /** Changes with every start of the controller. */
  bootId: string
  /** Changes when its memory of operations was lost. */
  memoryId: string
  /** The newest operation in its memory. */
  lastOperation: string | null
  /** Operations in its memory. */
  stored: number
  firmware: string
}

/**
 * What the links tell the core, synchronously. A frame is acknowledged only after its handler returned; a handler that
 * throws leaves it unacknowledged, and the controller sends it again.
 */
export interface ControllerEvents {
  onUp(controllerId: string, identity: ControllerIdentity): void
  onDown(controllerId: string, reason: string): void
  onResult(controllerId: string, outcome: OperationOutcome): void
  /** A command was refused: nothing moved, and the controller remembers nothing of it. */
  onRefused(controllerId: string, operationId: string, why: Refusal): void
  /** The answer to `list`, oldest first. */
  onListed(controllerId: string, operations: StoredOperation[]): void
  onDevice(controllerId: string, event: DeviceEvent): void
}

export interface Controllers {
  start(): void
  stop(): void
  /** Whether the device's controller is connected and has shaken hands. */
  isUp(deviceId: string): boolean
  /** The id of the memory of the device's controller, while it is up. */
  memoryId(deviceId: string): string | undefined
  /** The controller on whose line the device is. */
  controllerOf(deviceId: string): string | undefined
  /**
   * Sends an actuation. False where the controller is not up: nothing was written. It is repeated on this connection
   * until it is acknowledged, and never on a later one: what became of it is asked with `query` after `onUp`.
   */
  perform(request: ActuationRequest): boolean
  /** Asks for an operation's outcome; `onResult` answers. False where the controller is not up. */
  query(deviceId: string, operationId: string): boolean
  /** Asks for the newest `count` (at most 256) operations in memory; `onListed` answers. False where it is not up. */
  list(controllerId: string, count: number): boolean
  /** Drops the connection of the device's controller and opens a new one. */
  reopen(deviceId: string): void
}

/** Times of the serial links, in milliseconds. SPEC §4, §5. */
export interface LinkSettings {
  /** The first repetition of an unacknowledged frame; doubles up to `maxRetryMs`. */
  retryMs: number
  maxRetryMs: number
  pingMs: number
  /** Without any acknowledgement or PONG for this long the port counts as silent. */
  silentMs: number
  reopenMs: number
  maxReopenMs: number
}

export const defaultLinkSettings: LinkSettings = {
  retryMs: 25,
  maxRetryMs: 400,
  pingMs: 1000,
  silentMs: 3000,
  reopenMs: 250,
  maxReopenMs: 5000,
}

export interface ControllersOptions {
  hardware: HardwareDescription
  openPort: OpenLinePort
  runtime: Runtime
  log: Log
  settings: LinkSettings
}
