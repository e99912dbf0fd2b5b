import type { Cancel } from '../../protocol/model/runtime.ts'
import type { CommandBody, CommandResult } from '../../protocol/mqtt/command.ts'
import type { Controllers } from '../hardware/controllers.ts'
import type { Journal } from '../journal/journal.ts'
import type { CloudClock } from './cloud-clock.ts'
import type { CoreOptions } from './hub-core.ts'
import type { Devices } from './devices.ts'
import type { Doors } from '../hardware/doors.ts'
import type { Layout } from './layout.ts'
import type { Ledger } from './ledger.ts'

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
  journal: Journal
  layout: Layout
  devices: Devices
  doors: Doors
  cloud: CloudClock
  ledger: Ledger
  /** Controllers' memories that the journal knew when it was opened. */
  knownMemories: ReadonlyMap<string, string>
  /** On the monotonic clock. */
  startedAt: number
  waiters: Map<string, Waiter[]>
  /** By command id. */
  reconnecting: Map<string, Reconnecting>
  /** Commands that open and close a door again and again, as long as this life of the hub lasts; by id. */
  cycling: Map<string, CycleCommand>
  /** When to ask the controller what became of an open operation; on the monotonic clock. */
  askAt: Map<string, number>
  /** One event: `work` in a transaction, then every step that follows from it, then their effects after the commit. */
  turn: (work: () => void) => void
}
