import { defineTable, id, instant, int, oneOf, text } from '../table.ts'

/** What runs in the background, in which process, and what it tells customers. */
export const workTables = {
  /** The one queue of all that the cloud does later (`platform/work/queue.ts`). */
  due_work: defineTable({
    kind: text.fixed,
    /** What is to be looked at: the id of a row of the kind's own. Unique within the kind. */
    subject: text.fixed,
    /** When it is looked at next. Null: its attempts are exhausted, and a person has to look. */
    due_at: instant.nullable,
    /** Looks that have failed since the last that did not. */
    attempts: int,
    /** Until then the process that claimed it is at work on it. */
    leased_until: instant.nullable,
    /** Names that process's claim. Null: it has been made due anew since. */
    claim: text.nullable,
    last_error: text.nullable,
  })
    .primaryKey('kind', 'subject')
    .index('due_work_by_time', ['due_at'], 'due_at is not null')
    .index('due_work_by_kind', ['kind', 'due_at'], 'due_at is not null'),
  /** Runs of the documented background tasks, as somebody asked for them. */
  task_runs: defineTable({
    id: text.primaryKey.fixed,
    task: text.fixed,
    process_id: text.fixed,
    state: oneOf(['STARTED', 'SUCCESS', 'FAILURE']),
    /** JSON array of ids. */
    affected_ids: text.nullable,
    error: text.nullable,
    /** Its process is believed to live until then. */
    leased_until: instant,
    started_at: instant.fixed,
    finished_at: instant.nullable,
  })
    // Each is under way once, over all processes.
    .uniqueIndex('task_runs_one_started', ['task'], "state = 'STARTED'")
    .index('task_runs_by_age', ['started_at']),
  workers: defineTable({
    process_id: text.primaryKey.fixed,
    name: text,
    pid: int,
    started_at: instant,
    heartbeat_at: instant,
  }),
  /** Notices to customers, one for each device; a customer without any has one without. An order that is deleted takes its notices along. */
  notifications: defineTable({
    id,
    user_id: int.references('users').fixed,
    order_id: int.references('orders', { onDelete: 'cascade' }).fixed,
    kind: oneOf([
      'order_expiring',
      'order_ready',
      'order_unclaimed',
      'order_uncollected',
      'order_failed',
      'order_timed_out',
      'order_refunded',
    ]).fixed,
    /** Which one of several of a kind: `refunds.id`, or 0. */
    ref: int.fixed,
    /** `push_configs.id`, or 0. */
    push_config_id: int.fixed,
    state: oneOf(['pending', 'sent', 'failed']),
    error: text.nullable,
    created_at: instant.fixed,
    updated_at: instant,
  })
    .unique('order_id', 'kind', 'ref', 'push_config_id')
    .index('notifications_by_age', ['updated_at']),
}
