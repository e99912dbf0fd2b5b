import { defineTable, flag, id, instant, int, oneOf, real, text } from '../table.ts'

/** Hubs over MQTT. */
export const gatewayTables = {
  /**
   * A recorded heartbeat changes the four columns before `health`; `health` changes rarely. PostgreSQL logs only the
   * part between the first and the last changed byte of a row, so `health`, the largest part, is last.
   */
  hub_sessions: defineTable({
    hub_id: int.primaryKey.references('hubs'),
    session: text,
    /** Run of the hub's service and its monotonic clock, from the latest hello. An earlier hello is too late. */
    instance: text.nullable,
    hello_monotonic: real.nullable,
    software: text,
    /** The version of the desired state that the hub uses; null if it has reported none (`Hello.desired`). */
    applied_version: int.nullable,
    /** The version that the hub tried last and left again, and the reason. */
    failed_version: int.nullable,
    apply_error: text.nullable,
    /** The hub can move to another cell (`Hello.can_move`). Null: it has not reported it. */
    can_move: flag.nullable,
    /** Stalled parts between the hub and the cloud, with reason and time (`gateway/stalls.ts`). Null if none is. */
    stalled: text.nullable,
    /** The cloud process that serves this hub until the lease ends. */
    process_id: text,
    is_connected: flag,
    /** The hub's service has stopped cleanly, and no later session has sent a hello. */
    has_left: flag.default(0),
    lease_until: instant,
    last_heard_at: instant,
    health_at: instant.nullable,
    /** Time of `health` on the hub's monotonic clock. An older report does not replace it. */
    health_monotonic: real.nullable,
    /** `HubHealth`, or null before the first heartbeat. */
    health: text.nullable,
  }).updatedOften(),
  /** The latest figures of hubs' boards (`Vitals`). */
  hub_vitals: defineTable({
    hub_id: int.primaryKey.references('hubs'),
    at: instant,
    memory_bytes: int,
    disk_free_bytes: int.nullable,
    board_celsius: real.nullable,
    journal_bytes: int,
    link_errors: int,
    queue: int,
    restarts: int,
    clock_offset_ms: int.nullable,
    /** The latest start after a crash, a kill or a power failure, and the error that ended the former process. */
    crashed_at: instant.nullable,
    crash_error: text.nullable,
  }).updatedOften(),
  /** Requests for log records and diagnostic archives of hubs, with their answers until they are read. */
  diagnoses: defineTable({
    id: text.primaryKey.fixed,
    hub_id: int.references('hubs').fixed,
    /** JSON: `Diagnosis`. */
    wanted: text.fixed,
    state: oneOf(['pending', 'done', 'failed']),
    /** Error code of a failed request. */
    error: text.nullable,
    /** The cursor after the newest record. */
    cursor: text.nullable,
    /** The answer in base64. */
    content: text.nullable,
    asked_at: instant.fixed,
    /** When a part last arrived. */
    heard_at: instant,
  }).index('diagnoses_by_age', ['asked_at']),
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
    /** The error of the last attempt. */
    error: text,
    at: instant.fixed,
  })
    .unique('hub_id', 'stream', 'epoch', 'seq')
    .index('dead_letters_by_age', ['at']),
  commands: defineTable({
    id: text.primaryKey.fixed,
    hub_id: int.references('hubs').fixed,
    /** The session of the last transmission. */
    session: text,
    body: text.fixed,
    /** The target, as in the audit log. */
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
  /** Only written by the previous version; the next version drops it. `temperatures` has the readings. */
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
  /** Temperatures of fridges, one row per five minutes. */
  temperatures: defineTable({
    hub_id: int.fixed,
    fridge: int.fixed,
    /** Start of the five minutes. */
    at: instant.fixed,
    min: real,
    max: real,
    sum: real,
    samples: int,
    /** The time of the last reading; null in a row of the previous version. */
    last_at: instant.nullable,
  })
    .primaryKey('hub_id', 'fridge', 'at')
    .endsByAge('at', 'temperatures_by_age'),
}
