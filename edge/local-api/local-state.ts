import type { AcceptanceState } from '../../protocol/model/acceptance.ts'
import type { PageAction } from '../../protocol/model/hub-commands.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import type {
  AlarmSummary,
  DeadLetterSummary,
  FacingStock,
  FridgeReading,
  OrderSummary,
  UnknownOperation,
} from '../core/summaries.ts'
import type { LinkSummary } from '../hardware/link-summary.ts'

/** `GET /api/state`, as the page reads it. */
export interface LocalState {
  hub_id: number
  /** Why a retired hub cannot leave for another cell yet. Absent from an older hub. */
  waits_to_leave?: string | null
  alarms: AlarmSummary[]
  /** Parts that a person at the hub has taken out of service. */
  held: { orders: boolean; bins: number[] }
  health: HubHealth
  readings: FridgeReading[]
  orders: OrderSummary[]
  stock: FacingStock[]
  unknown_operations: UnknownOperation[]
  dead_letters: DeadLetterSummary[]
  links: LinkSummary[]
  /** The controllers with a foreign board on their line. */
  foreign_controllers: string[]
  acceptance: AcceptanceState
  commands: readonly PageAction[]
  /** `reason`: why the cloud does not answer. `reasonSince`: wall clock, milliseconds. */
  sync: { phase: string; reason?: string | undefined; reasonSince?: number | undefined }
}
