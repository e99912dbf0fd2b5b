import type { Bank } from './bank.ts'
import type { Chance } from './chance.ts'
import type { CloudNode } from './cloud-node.ts'
import type { CloudStore } from './cloud-store.ts'
import type { Coverage } from './coverage.ts'
import type { HubNode } from './hub-node.ts'
import type { Network } from './network.ts'
import type { Room } from './room.ts'

/** A place where people shop: a hub's service, and the room that it serves. */
export interface Site {
  hubId: number
  room: Room
  hub: HubNode
}

/** Everything that a mishap can befall. */
export interface Stage {
  sites: readonly Site[]
  clouds: readonly CloudNode[]
  store: CloudStore
  bank: Bank
  network: Network
  chance: Chance
  coverage: Coverage
  /** Does something later, whoever is alive by then. */
  readonly plan: (delayMs: number, run: () => unknown) => void
  readonly isStormy: () => boolean
  mayLose: Memory
  /** Boards with the copied card of a hub, that are switched on. */
  readonly impostors: Set<HubNode>
  /** A board with the copied card of a hub; its cables lead into `room`. */
  readonly openImpostor: (hubId: number, card: Buffer, room: Room) => HubNode
  /** A room with the hardware of a hub, in which nothing is powered. */
  readonly openWorkshop: (hubId: number) => Room
}

/**
 * Which of the memories of what has happened may be lost in a seed. Where two are lost between an act and its report,
 * nothing is left to reconcile from.
 */
export const memories = ['journal', 'controller memory', 'books'] as const
export type Memory = (typeof memories)[number]
