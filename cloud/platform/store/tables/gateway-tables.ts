import type { Generated } from 'kysely'
import type { Fixed, Flag, Instant } from './columns.ts'

/** Hubs over MQTT. */
export interface GatewayTables {
  hub_sessions: {
    hub_id: number
    session: string
    /** The cloud process that speaks for the cloud to this hub, until the lease ends. */
    process_id: string
    lease_until: Instant
    is_connected: Flag
    last_heard_at: Instant
    /** `HubHealth`, or null before the first heartbeat. */
    health: string | null
    health_at: Instant | null
    software: string
  }
  /** Receivers of hubs' streams. A new epoch adds a row and keeps the old one. */
  hub_streams: {
    hub_id: Fixed<number>
    /** ledger | telemetry */
    stream: Fixed<string>
    epoch: Fixed<string>
    cursor: number
    tag: number
    is_current: Flag
    created_at: Fixed<Instant>
  }
  /** Senders to hubs. */
  hub_outboxes: { hub_id: number; epoch: string; base: number; base_tag: number; last: number }
  hub_outbox_entries: {
    hub_id: Fixed<number>
    epoch: Fixed<string>
    seq: Fixed<number>
    tag: Fixed<number>
    body: Fixed<string>
  }
  dead_letters: {
    id: Generated<number>
    hub_id: Fixed<number>
    stream: Fixed<string>
    epoch: Fixed<string>
    seq: Fixed<number>
    body: Fixed<string>
    error: Fixed<string>
    at: Fixed<Instant>
  }
  commands: {
    id: Fixed<string>
    hub_id: Fixed<number>
    session: Fixed<string>
    body: Fixed<string>
    /** sent | executed | refused | failed | unknown */
    state: string
    reason: string | null
    data: string | null
    actor: Fixed<string>
    created_at: Fixed<Instant>
    finished_at: Instant | null
  }
  telemetry: {
    hub_id: Fixed<number>
    epoch: Fixed<string>
    seq: Fixed<number>
    fridge_number: Fixed<number>
    celsius: Fixed<number>
    at: Fixed<Instant>
  }
  alarms: {
    id: Generated<number>
    hub_id: Fixed<number>
    code: Fixed<string>
    device: Fixed<string>
    raised: Fixed<Flag>
    detail: Fixed<string>
    at: Fixed<Instant>
  }
}
