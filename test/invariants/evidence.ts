import type { Selectable } from 'kysely'
import type { Tables } from '../../cloud/platform/store/schema.ts'
import type { OrderStatus } from '../../protocol/model/order-status.ts'
import type { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import type { SalesBooks } from './recount.ts'

/**
 * What is looked at when everything has come to rest: the physical world's own log, and everybody's books. The simulation
 * collects it in memory, the process tests from the real programs' stores and the simulator's HTTP interface.
 */
export interface Evidence {
  world: WorldEvidence
  hub: HubEvidence
  cloud: CloudEvidence
  /** Commands that reached a hub only under a session other than their own, or after their time: none may move anything. */
  staleCommands: ReadonlySet<string>
  /** Operations that a command caused: operation id → command id. */
  commandOfOperation: ReadonlyMap<string, string>
  /**
   * What was in the cloud's books and is not since an older copy of them was put back: keys at the processor
   * (`pay:…`), orders (`order …`), and changes of stock (`stock …`). Nobody there can know of it any more.
   */
  lost?: ReadonlySet<string>
  /** Where somebody looked in all along. */
  watched?: WatchEvidence
}

/** What can only be seen while it happens. Durations in milliseconds. */
export interface WatchEvidence {
  /** Orders that stood at a status for longer than their deadlines allow, while nothing was wrong any more. */
  overstayed: readonly { order_id: number; status: OrderStatus; forMs: number }[]
  /** Rows that were due, and that nobody looked at for longer than any pause. */
  waiting: readonly { row: string; forMs: number }[]
  /** Orders that were sold long after the hub had said that it will not dispense a product of theirs. */
  soldBlind: readonly { order_id: number; product_id: number; forMs: number }[]
  /**
   * Lines of orders that had not begun when units of them were refunded, and the hub was told: how many units of the line
   * were still wanted, and how many operations had been begun by then.
   */
  takenBack: readonly { order_id: number; item_id: number; wanted: number; begun: number }[]
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
  /** Operations whose command left before their intent was committed, where somebody watched the line. */
  unjournaled: readonly string[]
  /** Motors that ran for longer than their command allowed, where somebody watched. Milliseconds. */
  overran: readonly { operation_id: string; ms: number; allowedMs: number }[]
  /** Dispenses of sold units that began without recent proof that their fridge is cold, where somebody watched. Milliseconds. */
  soldUnproven: readonly { operation_id: string; ms: number }[]
  /** Devices that are moving still, and locks that are open still. */
  moving: readonly string[]
  unlocked: readonly string[]
  /** What a dispensing operation was for, as its command said (`unitOfRef`). */
  refOfOperation: ReadonlyMap<string, string>
  /** The fault was raised by which one turn lets two units fall. */
  doubleDropsRaised: boolean
}

export interface HubEvidence {
  stock: readonly { location: string; product_id: number; quantity: number }[]
  /** The hub's own stock ledger, oldest first. */
  ledger: readonly { location: string; delta: number; cause_id: string; kind: string }[]
  /** Operations of which the hub still does not know what became. */
  unsettled: readonly { operation_id: string; location: string | null }[]
  open: readonly string[]
  /** Entries of the ledger stream that the cloud has not acknowledged. */
  pending: number
  deadLetters: readonly unknown[]
  /** What it has raised, and not lowered. */
  alarms: readonly { code: string; subject: string }[]
  orders: readonly { order_id: string; finished: boolean }[]
  /** What it has been told to serve with; null where it never was. */
  config: Pick<HubConfig, 'accepting_orders' | 'disabled_bins' | 'disabled_fridges'> | null
}

export interface CloudEvidence {
  orders: readonly Selectable<Tables['orders']>[]
  items: readonly Selectable<Tables['order_items']>[]
  payments: readonly Selectable<Tables['payments']>[]
  refunds: readonly Selectable<Tables['refunds']>[]
  /** Of every hub's: what names them to the processor. */
  allPayments: ReadonlySet<string>
  /** Of every customer, whatever hub they bought at. */
  wallets: readonly Selectable<Tables['wallets']>[]
  walletTransactions: readonly Selectable<Tables['wallet_transactions']>[]
  walletEntries: readonly Selectable<Tables['wallet_entries']>[]
  loyaltyAccounts: readonly Selectable<Tables['loyalty_accounts']>[]
  loyaltyEntries: readonly Selectable<Tables['loyalty_entries']>[]
  redemptions: readonly Selectable<Tables['deal_redemptions']>[]
  dealConstraints: readonly Selectable<Tables['deal_constraints']>[]
  products: readonly Selectable<Tables['products']>[]
  facings: readonly Selectable<Tables['facings']>[]
  stockLedger: readonly Selectable<Tables['stock_ledger']>[]
  /** What integrators are told of orders, oldest first. */
  events: readonly { type: string; order_id: number }[]
  outboxPending: number
  /** Counts of stock that the hub has not confirmed. */
  countsPending: number
  /** The hub's desired state. */
  wanted: { accepting_orders: boolean; disabled_bins: number[]; disabled_fridges: number[] }
  deadLetters: readonly unknown[]
  commands: readonly Selectable<Tables['commands']>[]
  alarms: readonly Pick<Selectable<Tables['alarms']>, 'kind' | 'incident' | 'quiet_since' | 'cleared_at'>[]
  /** What analytics keep of all sales there have been, and the books to count them anew from. */
  sales: SalesBooks & {
    totals: readonly Selectable<Tables['sales_totals']>[]
    hours: readonly Selectable<Tables['sales_hours']>[]
    customers: readonly Selectable<Tables['sales_customers']>[]
  }
  /** Payments of which the cloud knows that it has lost them, and whether an alarm is open for each. */
  orphans: readonly { ref: string; state: string; isTold: boolean }[]
  /** The processor's books. */
  intents: readonly Selectable<Tables['sandbox_intents']>[]
  processorRefunds: readonly Selectable<Tables['sandbox_refunds']>[]
  processorDisputes: readonly Selectable<Tables['sandbox_disputes']>[]
}

/** What Larder promises, by its numbers in the design. */
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
