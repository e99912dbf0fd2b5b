import { defineTable, growing, id, instant, int, oneOf, text } from '../table.ts'

/** Background work with its processes, and notifications to customers. */
export const workTables = {
  /** The queue of all deferred work of the cloud (`platform/work/queue.ts`). */
  due_work: defineTable({
    kind: text.fixed,
    /** The id of a row of the kind's own table. Unique within the kind. */
    subject: text.fixed,
    /** When it runs next. Null: its attempts are exhausted, and a person has to act. */
    due_at: instant.nullable,
    /** Consecutive failed runs. */
    attempts: int,
    /** Until then the process with the claim is working on it. */
    leased_until: instant.nullable,
    /** The claim of that process. Null: it was rescheduled since. */
    claim: text.nullable,
    last_error: text.nullable,
  })
    .primaryKey('kind', 'subject')
    .index('due_work_by_time', ['due_at'], 'due_at is not null')
    .index('due_work_by_kind', ['kind', 'due_at'], 'due_at is not null'),
  /** Runs of the documented background tasks, as callers requested them. */
  task_runs: defineTable({
    id: text.primaryKey.fixed,
    task: text.fixed,
    process_id: text.fixed,
    state: oneOf(['STARTED', 'SUCCESS', 'FAILURE']),
    /** JSON array of ids. */
    affected_ids: text.nullable,
    error: text.nullable,
    /** Its process is assumed to be alive until then. */
    leased_until: instant,
    started_at: instant.fixed,
    finished_at: instant.nullable,
  })
    // Each task has at most one run in progress, over all processes.
    .uniqueIndex('task_runs_one_started', ['task'], "state = 'STARTED'")
    .index('task_runs_by_age', ['started_at']),
  workers: defineTable({
    process_id: text.primaryKey.fixed,
    name: text,
    pid: int,
    started_at: instant,
    heartbeat_at: instant,
  }),
  /**
   * Notifications to customers, one per device. A customer without a device has one without. Deleted with their order.
   */
  notifications: defineTable({
    id,
    user_id: int.references('users'),
    order_id: int.references('orders', { onDelete: 'cascade' }).fixed,
    kind: growing([
      'order_expiring',
      'order_ready',
      'order_unclaimed',
      'order_uncollected',
      'order_failed',
      'order_timed_out',
      'order_refunded',
    ]).fixed,
    /** Distinguishes several of a kind: `refunds.id`, or 0. */
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
