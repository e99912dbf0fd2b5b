import { deviceId, type HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { isReadable, opOfUuid, uuidOfOp } from '../../protocol/serial/codec.ts'
import type {
  Action,
  Failure,
  FrameBody,
  FrameOf,
  OperationState,
  Owner,
  Refusal,
} from '../../protocol/serial/frames.ts'
import type { OpenLinePort } from '../../protocol/serial/line-port.ts'
import type { CommandRefusal, FirmwareRequest } from './link-state.ts'
import type { LinkSummary } from './link-summary.ts'
import type { LinkSettings } from '../../protocol/settings/hub-limits.ts'
import { SerialLink } from './serial-link.ts'

/** One actuation that the core requests. Its intent is journaled before (I1). */
export interface ActuationRequest {
  /** A UUIDv7: the operation's permanent identity (I1). */
  operationId: string
  /** `bin-1`, `cabinet-2`: the device that moves. */
  device: string
  action: Action
  /** The controller ends the motion on its own after this time (I7). Milliseconds, at most 600 000. */
  maxMs: number
  shelf?: number
  row?: number
  /** The bin that a dispensed unit falls into. */
  bin?: number
  /** A note that the controller stores with the operation: 1–40 characters of `A-Za-z0-9_.:+-`. */
  ref?: string
}

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

export interface Controllers {
  start(): void
  stop(): void
  /**
   * Sends an actuation. Returns false if the controller is not up: then nothing was written. The frame is
   * repeated on this connection until it is acknowledged, but never on a later one. After `onUp`, `query`
   * finds the outcome.
   */
  perform(request: ActuationRequest): boolean
  /** Queries an operation's outcome; the answer is `onResult`. Returns false if the controller is not up. */
  query(deviceId: string, operationId: string): boolean
  /**
   * Lists the newest `count` (at most 256) operations in memory; the answer is `onListed`. Returns false if
   * the controller is not up.
   */
  list(controllerId: string, count: number): boolean
  /**
   * Stores the owner in a controller (SPEC §8). With `wipe` the controller deletes its operations and
   * connects again. Returns false if it is not up.
   */
  own(controllerId: string, owner: Owner, wipe: boolean): boolean
  /** Sends a step of an update (SPEC §12); `onAnswered` follows. Returns false if the controller is not up. */
  updateFirmware(controllerId: string, request: FirmwareRequest): boolean
  /** Every line, for display. */
  links(): LinkSummary[]
  /** Number of connection losses since the start, by controller. */
  losses(): ReadonlyMap<string, number>
  /** Number of connection losses and of unreadable lines since the start. */
  errors(): number
  /** Drops the connection of the device's controller and opens a new one. */
  reopen(deviceId: string): void
}

export interface ControllersOptions {
  hardware: HardwareDescription
  openPort: OpenLinePort
  runtime: Runtime
  log: Log
  settings: LinkSettings
}

/** All controllers of the hub: routes each device to its line. */
export function createControllers(options: ControllersOptions, events: ControllerEvents): Controllers {
  const { hardware, openPort, runtime, log, settings } = options
  const links = new Map<string, SerialLink>()
  const losses = new Map<string, number>()
  const controllerByDevice = new Map<string, string>()
  for (const description of hardware.controllers) {
    const { id } = description
    losses.set(id, 0)
    for (const device of description.devices) controllerByDevice.set(deviceId(device), id)
    const link = new SerialLink(
      { description, openPort, runtime, log, settings },
      {
        onUp: (welcome) => events.onUp(id, identityOf(welcome)),
        onDown: (reason, boot) => {
          losses.set(id, losses.get(id)! + 1)
          events.onDown(id, reason, boot)
        },
        onResult: (frame) => events.onResult(id, outcomeOf(frame)),
        onEvent: (frame, boot) => events.onDevice(id, deviceEventOf(frame, boot)),
        onListed: (frames) => events.onListed(id, frames.map(storedOf)),
        onFirmware: (frame) => events.onFirmware?.(id, frame),
        onAnswered: (request, why) => events.onAnswered?.(id, request, why),
        onRefused: (command, why) => events.onRefused(id, uuidOfOp(command.op), why),
      },
    )
    links.set(id, link)
  }
  const linkOf = (device: string): SerialLink | undefined => links.get(controllerByDevice.get(device) ?? '')
  return {
    start: () => links.forEach((link) => link.start()),
    stop: () => links.forEach((link) => link.stop()),
    perform(request) {
      const command = commandOf(request)
      return linkOf(request.device)?.submit({ type: 'CMD', ...command }) ?? false
    },
    query: (device, operationId) =>
      linkOf(device)?.submit({ type: 'QRY', op: opOfUuid(operationId) }) ?? false,
    list: (controllerId, count) => links.get(controllerId)?.submit({ type: 'LST', n: count }) ?? false,
    own: (controllerId, owner, wipe) =>
      links.get(controllerId)?.submit({ type: 'OWN', ...owner, wipe }) ?? false,
    updateFirmware: (controllerId, request) => links.get(controllerId)?.submit(request) ?? false,
    links: () =>
      hardware.controllers.map(({ id, port }) => {
        const { welcome, problem } = links.get(id)!
        const up = welcome !== undefined
        const [firmware, protocol] = [welcome?.fw ?? null, welcome?.proto ?? null]
        return { controller: id, port, up, firmware, protocol, reason: up ? null : (problem ?? null) }
      }),
    losses: () => losses,
    errors: () =>
      [...losses.values(), ...[...links.values()].map((link) => link.unreadable)].reduce(
        (sum, n) => sum + n,
        0,
      ),
    reopen: (device) => linkOf(device)?.reopen('asked to reconnect'),
  }
}

/** Throws a `RangeError` for a request that no controller could parse: it would be repeated in vain. */
function commandOf(request: ActuationRequest): Omit<FrameBody<'CMD'>, 'host'> {
  const { operationId, device, action, maxMs, shelf, row, bin, ref } = request
  const command = { op: opOfUuid(operationId), dev: device, act: action, max: maxMs, shelf, row, bin, ref }
  if (!isReadable('CMD', { host: '00000000', ...command }))
    throw new RangeError(`not an actuation: ${JSON.stringify(command)}`)
  return command
}

const identityOf = ({ hub, ctl, store, ...frame }: FrameOf<'WELCOME'>): ControllerIdentity => ({
  bootId: frame.boot,
  memoryId: frame.mem,
  protocol: frame.proto,
  lastOperation: frame.last === undefined ? null : uuidOfOp(frame.last),
  stored: frame.count,
  firmware: frame.fw,
  owner: hub === undefined || ctl === undefined || store === undefined ? null : { hub, ctl, store },
})

const outcomeOf = ({ op, state, why, moved, drops, ms }: FrameOf<'RES' | 'OPS'>): OperationOutcome => ({
  operationId: uuidOfOp(op),
  state,
  why,
  moved,
  drops,
  ms,
})

function storedOf(frame: FrameOf<'OPS'>): StoredOperation {
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

function deviceEventOf(frame: FrameOf<'EVT'>, boot: string): DeviceEvent {
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
