import type { Bank } from './bank.ts'
import type { Chance } from './chance.ts'
import type { CloudNode } from './cloud-node.ts'
import type { CloudStore } from './cloud-store.ts'
import type { Coverage } from './coverage.ts'
import type { Fleet } from './fleet.ts'
import type { HubNode } from './hub-node.ts'
import type { Network } from './network.ts'
import type { Room } from './room.ts'

/** A shop: a hub's service, and its room. */
export interface Site {
  hubId: number
  room: Room
  hub: HubNode
}

/** All parts that a fault can strike. */
export interface Stage {
  sites: readonly Site[]
  clouds: readonly CloudNode[]
  store: CloudStore
  bank: Bank
  network: Network
  chance: Chance
  coverage: Coverage
  /** Schedules an event, independent of any life. */
  readonly plan: (delayMs: number, run: () => unknown) => void
  readonly isStormy: () => boolean
  mayLose: Memory
  readonly fleet?: Fleet | undefined
  /** Running boards with a hub's copied card. */
  readonly impostors: Set<HubNode>
  /** Opens a board with a hub's copied card; its cables lead into `room`. */
  readonly openImpostor: (hubId: number, card: Buffer, room: Room) => HubNode
  /** Opens a room with the hardware of a hub, without power. */
  readonly openWorkshop: (hubId: number) => Room
}

/**
 * Memories of past events; a seed may lose only one. If two are lost between an act and its report, there is
 * nothing to reconcile from.
 */
export const memories = ['journal', 'controller memory', 'books'] as const
export type Memory = (typeof memories)[number]
