import { deviceId, type HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { isReadable, opOfUuid } from '../../protocol/serial/codec.ts'
import type { Action, FrameBody, Owner } from '../../protocol/serial/frames.ts'
import type { OpenLinePort } from '../../protocol/serial/line-port.ts'
import type { ControllerEvents } from './controller-events.ts'
import type { FirmwareRequest } from './link-state.ts'
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
  const controllerByDevice = new Map<string, string>()
  for (const description of hardware.controllers) {
    const { id, devices } = description
    for (const device of devices) controllerByDevice.set(deviceId(device), id)
    links.set(id, new SerialLink({ description, openPort, runtime, log, settings }, events))
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
    losses: () => new Map([...links].map(([id, { losses }]) => [id, losses])),
    errors: () => [...links.values()].reduce((sum, { losses, unreadable }) => sum + losses + unreadable, 0),
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
