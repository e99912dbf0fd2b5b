import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { GpioLines, HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Cancel, Runtime } from '../../protocol/model/runtime.ts'
import type { RunningTime } from '../../protocol/model/running-time.ts'
import type { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { CommandResult } from '../../protocol/mqtt/command.ts'
import type { ControllerEvents } from '../hardware/controller-events.ts'
import type { Controllers } from '../hardware/controllers.ts'
import type { CoreDesired, FirmwareOutcome } from '../desired/desired-states.ts'
import type { Doors } from '../hardware/doors.ts'
import type { State } from '../journal/state.ts'
import type { Outbox } from '../journal/outbox.ts'
import type { Store } from '../journal/store.ts'
import type { CloudClock } from './cloud-clock.ts'
import type { Devices, OtherBoard } from './devices.ts'
import type { FirmwareImage } from '../hardware/firmware-images.ts'
import { isHeldByUpdate, type BoardFirmware } from './firmware-step.ts'
import { cabinetDevice, type Layout } from './layout.ts'
import type { Ledger } from './ledger.ts'
import type { CoreSettings } from '../../protocol/settings/hub-limits.ts'

/** A certificate by its name (`certificateSubject`). `endsAt`: wall time, milliseconds. */
export interface CertificateEnd {
  name: string
  endsAt: number
  lifetimeMs?: number
}

export interface CoreOptions {
  runtime: Runtime
  log: Log
  store: Store
  outbox: Outbox
  /**
   * Forgets the entries received from the cloud, so that the inbox starts again with a snapshot (for a
   * restored store).
   */
  resetInbox: () => void
  /** Connects the core with its controllers; the core starts and stops them. */
  openControllers: (events: ControllerEvents) => Controllers
  /** Whether the hub's reports have not reached the cloud for long (`Sync.isStalled`). */
  isStalled?: () => boolean
  /** Whether this version is on trial (`update/trial.ts`): nothing moves, and each action is refused. */
  isOnTrial?: (() => boolean) | undefined
  /** The error that ended the previous process, if it stored one. */
  lastError?: string | undefined
  /** True if the service starts; false if it only reopened its journal after a storage failure. */
  isStart?: boolean | undefined
  /** The certificates that this hub knows. */
  certificates?: (() => readonly CertificateEnd[]) | undefined
  /** The desired state of the cloud. Absent: the hub ignores it. */
  desired?: CoreDesired | undefined
  /** The newest firmware of each kind of controllers. Absent: the hub updates none. */
  images?: readonly FirmwareImage[] | undefined
  gpio: GpioLines
  hardware: HardwareDescription
  /** The hardware description with its ports as in its file, for a cloud that has none. */
  description?: HardwareDescription | undefined
  /** The number of this hub in the cell from which it moved. */
  formerHubId?: number | undefined
  settings: CoreSettings
  /** Name and version of the service. */
  software: string
  checkpoint: Checkpoint
}

export type Reply = (result: CommandResult) => void

/** A caller that waits for a command's result on the current connection. */
export interface Waiter {
  session: string
  reply: Reply
}

/** A command that waits for a controller's handshake on a new connection. */
interface Reconnecting {
  controller: string
  /** On the monotonic clock. */
  startedAt: number
  cancel: Cancel
}

export type CycleCommand = Extract<CommandBody, { name: 'cycle_bin' }>

/** State and services that all parts of the core share. */
export interface Context extends Omit<CoreOptions, 'openControllers' | 'images'> {
  /** The monotonic clock counts only the time in which the process runs (`running`). */
  runtime: Runtime
  running: RunningTime
  images: readonly FirmwareImage[]
  /** By controller id: the firmware of its own board on the present connection. */
  firmware: Map<string, BoardFirmware>
  /** By controller id: when it last had a known firmware, or was ordered to run one. */
  firmwareSeenAt: Map<string, number>
  /** By controller id: when its connection was lost while its update was pending. */
  firmwareLostAt: Map<string, number>
  /** The outcome that was noted last, and the rollout of the release that ran then. */
  firmwareOutcome: { rollout: string | null; outcome: FirmwareOutcome } | undefined
  controllers: Controllers
  state: State
  layout: Layout
  devices: Devices
  doors: Doors
  cloud: CloudClock
  ledger: Ledger
  /** This journal's own id. Controllers store it, so that the hub recognizes its own boards (serial SPEC §8). */
  storeId: string
  /** By controller id: a board on its line that does not belong to this hub. */
  otherBoards: Map<string, OtherBoard>
  /**
   * By controller id: the boot id of this hub's own board, reported on the open line. A board with this boot
   * id is that board, even if it lost its memory.
   */
  ownBoots: Map<string, string>
  /** By controller id: the memory id that the journal contained when it was opened. */
  knownMemories: ReadonlyMap<string, string>
  /** On the monotonic clock. */
  startedAt: number
  /** Start of the storage failure in cloud time, for the hub's page. */
  failingSince: number | undefined
  waiters: Map<string, Waiter[]>
  /** Reconnect commands by command id. */
  reconnecting: Map<string, Reconnecting>
  /** Running cycle commands by command id, in memory only: a restart ends them. */
  cycling: Map<string, CycleCommand>
  /** By door: when it opened, on the monotonic clock. */
  openSince: Map<string, number>
  /** By device: start of its silence, on the monotonic clock. */
  silentSince: Map<string, number>
  /** By operation id: when to query the controller for the outcome; on the monotonic clock. */
  askAt: Map<string, number>
  /**
   * Handles one event (`actor.ts`): runs `work` and every following step in one transaction, then their
   * effects. Returns false if the disk is full; then the transaction is rolled back.
   */
  handle: (work: () => void) => boolean
  /**
   * Handles an event that its source does not repeat. If the disk is full, the event waits in memory until it can be stored,
   * once for each `key`.
   */
  handleUnrepeated: (work: () => void, key?: string) => void
}

/**
 * Whether the device's controller is connected and its memory is reconciled with the journal, so that it may
 * get commands. A controller with a new firmware that is not confirmed yet gets none.
 */
export const isUsable = (context: Context, device: string): boolean =>
  isControllerUsable(context, context.layout.controllerOf(device) ?? '')

export function isControllerUsable({ devices, state, firmware }: Context, controller: string): boolean {
  const board = firmware.get(controller)
  const isReconciled = state.controllers.find(controller)?.reconciled === true
  return devices.isUp(controller) && isReconciled && !(board && isHeldByUpdate(board))
}

/**
 * Start-up grace: milliseconds that the hub still waits for cabinets that have not connected since its start.
 * This store may be an old copy. Then only a cabinet's memory knows what was dispensed after the copy was
 * made. Until all cabinets have reported, no cabinet may dispense the same unit again.
 */
export function startUpGraceMs({ layout, devices, runtime, startedAt, settings }: Context): number {
  const isComplete = layout.cabinets.every((cabinet) => isMet({ layout, devices }, cabinet))
  return isComplete ? 0 : Math.max(0, startedAt + settings.startUpGraceMs - runtime.clock.monotonic())
}

/** No cabinet has connected since the start. A card on a bench knows only the stock that its journal contains. */
export const isWithoutCabinets = ({ layout, devices }: Context): boolean =>
  layout.cabinets.length > 0 && !layout.cabinets.some((cabinet) => isMet({ layout, devices }, cabinet))

const isMet = ({ layout, devices }: Pick<Context, 'layout' | 'devices'>, cabinet: number): boolean =>
  devices.isMet(layout.controllerOf(cabinetDevice(cabinet)) ?? '')
