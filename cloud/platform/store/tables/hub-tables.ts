import type { Generated } from 'kysely'
import type { Fixed, Flag, Instant } from './columns.ts'

/** Hubs and whose they are. */
export interface HubTables {
  owners: { id: Generated<number>; name: string }
  hubs: {
    id: Generated<number>
    owner_id: Fixed<number>
    name: string
    street_address_1: string
    street_address_2: string | null
    city: string
    state: string
    postal_code: string
    longitude: number
    latitude: number
    timezone: string
    /** active | paused | maintenance | inactive */
    hub_status: string
    mqtt_password_digest: string
    /** Desired state (contract §6), sent to the hub as `config`. */
    accepting_orders: Flag
    disabled_bins: string
    disabled_fridges: string
    /** Sales tax in hundredths of a percent. */
    tax_basis_points: number
    created_at: Fixed<Instant>
  }
  /** Layout (O §2): what shelves a hub's cabinets have, and how many rows these. The cloud owns it (design §2). */
  hub_shelves: { hub_id: number; cabinet: number; shelf: number; total_rows: number }
  /** The fridges of a hub, and the cabinets that their doors give on. */
  hub_fridges: {
    hub_id: number
    fridge: number
    left_cabinet: number
    middle_cabinet: number
    right_cabinet: number
  }
  /** The cabinets behind doors of disabled fridges; written with `hubs.disabled_fridges`, and from nothing else. */
  closed_cabinets: { hub_id: number; cabinet: number }
}
