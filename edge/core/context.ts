import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { GpioLines, HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Cancel, Runtime } from '../../protocol/model/runtime.ts'
import type { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { CommandResult } from '../../protocol/mqtt/command.ts'
import type { ControllerEvents, Controllers } from '../hardware/controllers.ts'
import type { Doors } from '../hardware/doors.ts'
import type { State } from '../journal/state.ts'
import type { Outbox } from '../journal/outbox.ts'
import type { Store } from '../journal/store.ts'
import type { CloudClock } from './cloud-clock.ts'
import type { Devices, Stranger } from './devices.ts'
import { cabinetDevice, type Layout } from './layout.ts'
import type { Ledger } from './ledger.ts'
import type { CoreSettings } from '../limits.ts'

export interface CoreOptions {
  runtime: Runtime
  log: Log
  store: Store
  outbox: Outbox
  /** Forgets what was received from the cloud, so that it begins again with a snapshot (a store that was restored). */
  resetInbox: () => void
  /** Connects the core with its controllers; the core starts and stops them. */
  openControllers: (events: ControllerEvents) => Controllers
  /** Whether what the hub reports has not reached the cloud for long (`Sync.isStalled`). */
  isStalled?: () => boolean
  /** The error by which the life before ended, if it has left one. */
  lastWords?: string | undefined
  /** The service starts; false: it has only opened its journal again, after a failure of the storage. */
  isStart?: boolean
  /** The certificates that this hub knows, by name (`certificateSubject`), and when they end (wall time, milliseconds). */
  certificates?: () => readonly { name: string; endsAt: number }[]
  gpio: GpioLines
  hardware: HardwareDescription
  settings: CoreSettings
  /** Name and version of the service. */
  software: string
  checkpoint: Checkpoint
}

export type Reply = (result: CommandResult) => void

/** Someone who waits for a command's result on the present connection. */
export interface Waiter {
  session: string
  reply: Reply
}

/** A command that waits for a controller's handshake on a new connection. */
export interface Reconnecting {
  controller: string
  /** On the monotonic clock. */
  begunAt: number
  cancel: Cancel
}

export type CycleCommand = Extract<CommandBody, { name: 'cycle_bin' }>

/** What the parts of the core share. */
export interface Context extends Omit<CoreOptions, 'openControllers'> {
  controllers: Controllers
  state: State
  layout: Layout
  devices: Devices
  doors: Doors
  cloud: CloudClock
  ledger: Ledger
  /** This journal's own id, by which controllers know whose they are (serial SPEC §8). */
  storeId: string
  /** By controller: the board on its line that is not this hub's. */
  strangers: Map<string, Stranger>
  /** By controller: the start of this hub's own board that was heard on the open line: it is that board, whatever it has forgotten. */
  ownBoots: Map<string, string>
  /** By controller: the ids of the memories that the journal knew when it was opened. */
  knownMemories: ReadonlyMap<string, string>
  /** On the monotonic clock. */
  startedAt: number
  /** Since when the storage fails, as the page shows it; cloud time. */
  failingSince: number | undefined
  waiters: Map<string, Waiter[]>
  /** By command id. */
  reconnecting: Map<string, Reconnecting>
  /** Commands that open and close a door again and again, as long as this life of the hub lasts; by id. */
  cycling: Map<string, CycleCommand>
  /** By door: since when it stands open, on the monotonic clock. */
  openSince: Map<string, number>
  /** By device: since when it has not said how it stands, on the monotonic clock. */
  unheardSince: Map<string, number>
  /** By operation id: when to ask the controller what became of it; on the monotonic clock. */
  askAt: Map<string, number>
  /**
   * Handles one event (`actor.ts`): `work` and every step that follows from it in a transaction, then their effects. False
   * where the disk is full: nothing of it happened.
   */
  handle: (work: () => void) => boolean
}

/** Whether the device's controller is connected and may be given orders: its memory is reconciled with the journal. */
export const isUsable = (context: Context, device: string): boolean =>
  isControllerUsable(context, context.layout.controllerOf(device) ?? '')

export const isControllerUsable = ({ devices, state }: Context, controller: string): boolean =>
  devices.isUp(controller) && state.controllers.find(controller)?.reconciled === true

/**
 * The start-up grace: how long the hub still waits for cabinets that it has not met since its start. This store may be a
 * copy, and the memory of one cabinet the only witness of what was dispensed since it was made: as long as one has not
 * reported, another must not dispense the same unit again.
 */
export function startUpGraceMs({ layout, devices, runtime, startedAt, settings }: Context): number {
  const isComplete = layout.cabinets.every((cabinet) => isMet({ layout, devices }, cabinet))
  return isComplete ? 0 : Math.max(0, startedAt + settings.startUpGraceMs - runtime.clock.monotonic())
}

/** It has met none of its cabinets since its start: a card on a bench knows of stock what it has read. */
export const isWithoutCabinets = ({ layout, devices }: Context): boolean =>
  layout.cabinets.length > 0 && !layout.cabinets.some((cabinet) => isMet({ layout, devices }, cabinet))

const isMet = ({ layout, devices }: Pick<Context, 'layout' | 'devices'>, cabinet: number): boolean =>
  devices.isMet(layout.controllerOf(cabinetDevice(cabinet)) ?? '')
