import { defineTable, flag, id, instant, int, oneOf, real, text } from '../table.ts'

/** Hubs over MQTT. */
export const gatewayTables = {
  /**
   * A heartbeat changes the four columns before `health`, and `health` seldom. PostgreSQL logs only the part between the first
   * and the last changed byte of a row, so `health`, most of the row, stands last.
   */
  hub_sessions: defineTable({
    hub_id: int.primaryKey.references('hubs'),
    session: text,
    /** The life of the hub's service and its monotonic clock, as the latest hello said them: an earlier one comes too late. */
    instance: text.nullable,
    hello_monotonic: real.nullable,
    software: text,
    /** What stands still between the hub and the cloud, by part, with reason and time (`gateway/stalls.ts`); null if nothing does. */
    stalled: text.nullable,
    /** The cloud process that speaks for the cloud to this hub, until the lease ends. */
    process_id: text,
    is_connected: flag,
    /** The hub's service has stopped in good order, and no later session has said hello. */
    has_left: flag.default(0),
    lease_until: instant,
    last_heard_at: instant,
    health_at: instant.nullable,
    /** Time of `health` on the hub's own monotonic clock: an older report does not replace it. */
    health_monotonic: real.nullable,
    /** `HubHealth`, or null before the first heartbeat. */
    health: text.nullable,
  }).updatedOften(),
  /** Receivers of hubs' streams. A new epoch adds a row and keeps the old one. */
  hub_streams: defineTable({
    hub_id: int.references('hubs').fixed,
    stream: oneOf(['ledger', 'telemetry']).fixed,
    epoch: text.fixed,
    cursor: int,
    tag: int,
    is_current: flag,
    created_at: instant.fixed,
  })
    .primaryKey('hub_id', 'stream', 'epoch')
    .uniqueIndex('hub_streams_one_current', ['hub_id', 'stream'], 'is_current = 1'),
  /** Senders to hubs. */
  hub_outboxes: defineTable({
    hub_id: int.primaryKey.references('hubs'),
    epoch: text,
    base: int,
    base_tag: int,
    last: int,
  }).check('base <= last'),
  hub_outbox_entries: defineTable({
    hub_id: int.references('hubs').fixed,
    epoch: text.fixed,
    seq: int.fixed,
    tag: int.fixed,
    body: text.fixed,
  }).primaryKey('hub_id', 'epoch', 'seq'),
  dead_letters: defineTable({
    id,
    hub_id: int.fixed,
    stream: text.fixed,
    epoch: text.fixed,
    seq: int.fixed,
    body: text.fixed,
    /** Of the last try. */
    error: text,
    at: instant.fixed,
  })
    .unique('hub_id', 'stream', 'epoch', 'seq')
    .index('dead_letters_by_age', ['at']),
  commands: defineTable({
    id: text.primaryKey.fixed,
    hub_id: int.references('hubs').fixed,
    /** In which it was sent last. */
    session: text,
    body: text.fixed,
    /** What it is about, as the audit log calls it. */
    object: text.fixed,
    state: oneOf(['sent', 'executed', 'refused', 'failed', 'unknown']),
    reason: text.nullable,
    data: text.nullable,
    actor: text.fixed,
    created_at: instant.fixed,
    finished_at: instant.nullable,
  })
    .index('commands_open', ['created_at'], "state = 'sent'")
    .index('commands_by_age', ['finished_at'], 'finished_at is not null')
    .index('commands_by_person', ['actor'], "substr(actor, 1, 9) = 'identity:'"),
  telemetry: defineTable({
    hub_id: int.fixed,
    epoch: text.fixed,
    seq: int.fixed,
    fridge_number: int.fixed,
    celsius: real.fixed,
    at: instant.fixed,
  })
    .primaryKey('hub_id', 'epoch', 'seq')
    .index('telemetry_by_age', ['at']),
  /** How warm fridges were, over five minutes each. */
  temperatures: defineTable({
    hub_id: int.fixed,
    fridge: int.fixed,
    /** When the five minutes began. */
    at: instant.fixed,
    min: real,
    max: real,
    sum: real,
    samples: int,
  })
    .primaryKey('hub_id', 'fridge', 'at')
    .index('temperatures_by_age', ['at']),
}
