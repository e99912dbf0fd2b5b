import type { Fixed, Flag, Instant } from './columns.ts'

/** The hubs' management services, and what was asked of them. */
export interface ManagementTables {
  /** Where a hub's management service is, and the key by which it is known. */
  hub_management: {
    hub_id: Fixed<number>
    host: string
    port: number
    /** `SHA256:…` */
    host_key: string
  }
  /** Bins enabled and disabled over SSH: written before the hub is asked, so that no outcome is lost. */
  management_changes: {
    id: Fixed<string>
    hub_id: Fixed<number>
    bin_number: Fixed<number>
    enabled: Fixed<Flag>
    actor: Fixed<string>
    /** pending | done | failed | superseded | unknown */
    state: string
    created_at: Fixed<Instant>
    /** When to ask the hub what became of it, while it is pending. */
    check_at: Instant
  }
}
