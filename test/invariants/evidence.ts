import type { Selectable } from 'kysely'
import type { Tables } from '../../cloud/platform/store/schema.ts'
import type { OrderStatus } from '../../protocol/model/order-status.ts'
import type { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import type { SalesBooks } from './recount.ts'

/**
 * The facts after everything has come to rest: the physical world's own log and the books of all parts. The
 * simulation collects them in memory. The process tests read the real programs' stores and the simulator's
 * HTTP interface.
 */
export interface Evidence {
  world: WorldEvidence
  hub: HubEvidence
  cloud: CloudEvidence
  /** Commands that reached a hub only in another session or after their time: none may move anything. */
  staleCommands: ReadonlySet<string>
  /** Operations that a command caused: operation id → command id. */
  commandOfOperation: ReadonlyMap<string, string>
  /**
   * Rows that the cloud's books lost when an older copy was restored: keys at the processor (`payment:…`), orders
   * (`order …`), and changes of stock (`stock …`). The cloud cannot know them any more.
   */
  lost?: ReadonlySet<string>
  /** Observations during the run, if an observer was present. */
  watched?: WatchEvidence
}

/** Facts that only an observer during the run can see. Durations in milliseconds. */
export interface WatchEvidence {
  /** Orders that stayed at a status for longer than their deadlines allow, although no fault was present. */
  overstayed: readonly { order_id: number; status: OrderStatus; forMs: number }[]
  /** Due rows that were not processed for longer than any pause. */
  waiting: readonly { row: string; forMs: number }[]
  /**
   * Orders that were sold long after the hub had reported that it will not dispense one of their products.
   */
  soldUnsellable: readonly { order_id: number; product_id: number; forMs: number }[]
  /**
   * Lines of orders that had not started when units were refunded and the hub was informed. `wanted`: units
   * of the line that remained; `begun`: operations started by then.
   */
  refundedUnstarted: readonly { order_id: number; item_id: number; wanted: number; begun: number }[]
}

/** One motion that really happened. */
export interface Motion {
  n: number
  at: number | string
  device: string
  action: string
  operation_id?: string | undefined
  detail: Record<string, unknown>
}

export interface WorldEvidence {
  motions: readonly Motion[]
  shelves: readonly { location: string; initial: number; restocked: number; now: number }[]
  /** Operations with a command that left before their intent was committed, if the line was observed. */
  unjournaled: readonly string[]
  /** Blocks of a firmware that a controller stored while one of its motors ran, if observed. */
  hasty?: readonly string[]
  /** Motors that ran for longer than their command allowed, if observed. Milliseconds. */
  overran: readonly { operation_id: string; ms: number; allowedMs: number }[]
  /** Rows that turned behind an unlocked or open fridge door, as sentences, if observed. */
  reachable?: readonly string[]
  /**
   * Dispenses of sold units that started without recent proof that their fridge is cold, if observed.
   * Milliseconds.
   */
  soldUnproven: readonly { operation_id: string; ms: number }[]
  /** Devices that still move, and locks that are still open. */
  moving: readonly string[]
  unlocked: readonly string[]
  /** The unit of a dispense operation, from its command (`unitOfRef`). */
  refOfOperation: ReadonlyMap<string, string>
  /** Whether the fault was raised that makes one turn drop two units. */
  doubleDropsRaised: boolean
}

export interface HubEvidence {
  stock: readonly { location: string; product_id: number; quantity: number }[]
  /** The hub's own stock ledger, oldest first. */
  ledger: readonly { location: string; delta: number; cause_id: string; kind: string }[]
  /** Operations with an outcome that is unknown to the hub. */
  unsettled: readonly { operation_id: string; location: string | null }[]
  open: readonly string[]
  /** Entries of the ledger stream that the cloud has not acknowledged. */
  pending: number
  deadLetters: readonly unknown[]
  /** Alarms that the hub has raised and not cleared. */
  alarms: readonly { code: string; subject: string }[]
  orders: readonly { order_id: string; finished: boolean }[]
  /** Configuration that the hub has received; null if it never received one. */
  config: Pick<HubConfig, 'accepting_orders' | 'disabled_bins' | 'disabled_fridges'> | null
}

export interface CloudEvidence {
  orders: readonly Selectable<Tables['orders']>[]
  items: readonly Selectable<Tables['order_items']>[]
  payments: readonly Selectable<Tables['payments']>[]
  refunds: readonly Selectable<Tables['refunds']>[]
  /** Names of the payments of all hubs at the processor. */
  allPayments: ReadonlySet<string>
  /** Wallets and points of all customers, independent of the hub. */
  ledgerAccounts: readonly Selectable<Tables['ledger_accounts']>[]
  ledgerEntries: readonly Selectable<Tables['ledger_entries']>[]
  redemptions: readonly Selectable<Tables['deal_redemptions']>[]
  dealConstraints: readonly Selectable<Tables['deal_constraints']>[]
  products: readonly Selectable<Tables['products']>[]
  facings: readonly Selectable<Tables['facings']>[]
  stockLedger: readonly Selectable<Tables['stock_ledger']>[]
  /** Events about orders, oldest first. */
  events: readonly { type: string; order_id: number }[]
  outboxPending: number
  /** Counts of stock that the hub has not confirmed. */
  countsPending: number
  /** The hub's desired state. */
  wanted: { accepting_orders: boolean; disabled_bins: number[]; disabled_fridges: number[] }
  deadLetters: readonly unknown[]
  commands: readonly Selectable<Tables['commands']>[]
  alarms: readonly Pick<Selectable<Tables['alarms']>, 'kind' | 'incident' | 'quiet_since' | 'cleared_at'>[]
  /** Totals of the analytics for all sales, and the books to recount them. */
  sales: SalesBooks & {
    totals: readonly Selectable<Tables['sales_totals']>[]
    days: readonly Selectable<Tables['sales_days']>[]
    customers: readonly Selectable<Tables['sales_customers']>[]
  }
  /** Payments that the cloud knows to be lost, and whether an alarm is open for each. */
  orphans: readonly { ref: string | null; isTold: boolean }[]
  /** The processor's books. */
  intents: readonly Selectable<Tables['sandbox_intents']>[]
  processorRefunds: readonly Selectable<Tables['sandbox_refunds']>[]
  processorDisputes: readonly Selectable<Tables['sandbox_disputes']>[]
}

/** The promises of Larder, by their numbers in the glossary. */
export const invariants = [
  'I1',
  'I2',
  'I3',
  'I4',
  'I5',
  'I6',
  'I7',
  'I8',
  'I9',
  'I10',
  'I11',
  'I12',
  'I13',
  'I14',
  'I15',
] as const

export interface Violation {
  invariant: (typeof invariants)[number]
  text: string
}
