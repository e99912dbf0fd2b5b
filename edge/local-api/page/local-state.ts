import type { AcceptanceState } from '../../../protocol/model/acceptance.ts'
import type { PageAction } from '../../../protocol/model/hub-commands.ts'
import type { Location } from '../../../protocol/model/location.ts'

/** The fields of `GET /api/state` that the page uses (`local-api.ts` creates it; a test compares both). */
export interface LocalState {
  hub_id: number
  alarms: { code: string; subject: string; detail: string | null; raised_at: number }[]
  held: { orders: boolean; bins: number[] }
  health: {
    accepting_orders: boolean
    unknown_operations: number
    bins: {
      bin_number: number
      capacity: number
      enabled: boolean
      status: string
      door: string
      lift: string
      occupied: boolean | null
      fault_code: string | null
      order_id: string | null
    }[]
    fridges: {
      fridge_number: number
      enabled: boolean
      status: string
      temperature: number | null
      shutoff: boolean
    }[]
    doors: { door: string; status: string }[]
  }
  orders: {
    order_id: string
    order_number: number
    phase: string
    bins: number[]
    lines: { line_id: number; product_id: number; quantity: number; dropped: number; doubtful: number }[]
  }[]
  stock: {
    product_id: number
    name: string | null
    upc: string | null
    location: Location
    primary: boolean
    quantity: number
    capacity: number
    blocked: string | null
  }[]
  unknown_operations: {
    operation_id: string
    device: string
    action: string
    location: Location | null
    product_id: number | null
    order_number: number | null
    at: number
  }[]
  dead_letters: { id: number; kind: string | null; error: string; body: string; at: number }[]
  links: {
    controller: string
    port: string
    up: boolean
    firmware: string | null
    protocol: number | null
    reason: string | null
  }[]
  readings: { fridge_number: number; celsius: number | null; age_min: number | null; why: string | null }[]
  foreign_controllers: string[]
  acceptance: AcceptanceState
  commands: PageAction[]
  sync: { phase: string; reason?: string | undefined; reasonSince?: number | undefined }
}
