import type { Location } from '../../protocol/model/location.ts'

/** The summaries of the hub's work for people at the hub. The page imports them, so they depend on nothing of Node. */

export interface AlarmSummary {
  code: string
  subject: string
  detail: string | null
  /** Cloud time, milliseconds. */
  raised_at: number
}

/** An operation with unknown outcome (I1), for a person to resolve. */
export interface UnknownOperation {
  operation_id: string
  device: string
  action: string
  location: Location | null
  product_id: number | null
  order_id: string | null
  /** The order number that people use. */
  order_number: number | null
  line_id: number | null
  /** Cloud time of the intent, milliseconds. */
  at: number
}

export interface OrderSummary {
  order_id: string
  order_number: number
  phase: string
  bins: number[]
  lines: { line_id: number; product_id: number; quantity: number; dropped: number; doubtful: number }[]
}

/** A cloud entry that this hub could not apply (I8). */
export interface DeadLetterSummary {
  id: number
  /** `config`, `order.queued`, …; null if the entry has none. */
  kind: string | null
  error: string
  /** The entry as received, JSON text. */
  body: string
  /** The hub's wall clock, milliseconds since the Unix epoch. */
  at: number
}

export interface FacingStock {
  product_id: number
  /** The product's name and barcode; null if the cloud has not sent them. */
  name: string | null
  upc: string | null
  location: Location
  primary: boolean
  quantity: number
  /** Units that the row holds; 0 if the hub's hardware has no such row. */
  capacity: number
  /** Why the row does not sell: the controller's fault, `unknown`, `disabled` or `shutoff`; null if it sells. */
  blocked: string | null
}

/** The reading of a fridge's probe. */
export interface FridgeReading {
  fridge_number: number
  /** Degrees Celsius; null without a valid reading. */
  celsius: number | null
  /** Whole minutes since the last plausible reading; null if there was none since the hub's start. */
  age_min: number | null
  /** Why there is no valid reading. */
  why: string | null
}
