import { defineTable, id, instant, int, oneOf, text } from '../table.ts'

/** What runs in the background, in which process, and what it tells customers. */
export const workTables = {
  /** One row a task: whoever holds it runs it, until the lease ends. */
  task_schedules: defineTable({
    task: text.primaryKey.fixed,
    next_due_at: instant,
    run_id: text.nullable,
    lease_until: instant.nullable,
  }),
  task_runs: defineTable({
    id: text.primaryKey.fixed,
    task: text.fixed,
    process_id: text.fixed,
    state: oneOf(['STARTED', 'SUCCESS', 'FAILURE']),
    /** JSON array of ids. */
    affected_ids: text.nullable,
    error: text.nullable,
    started_at: instant.fixed,
    finished_at: instant.nullable,
  }).index('task_runs_by_age', ['started_at']),
  workers: defineTable({
    process_id: text.primaryKey.fixed,
    name: text.fixed,
    pid: int.fixed,
    started_at: instant.fixed,
    heartbeat_at: instant,
  }),
  /** Notices to customers, one for each device; a customer without any has one without. An order that is deleted takes its notices along. */
  notifications: defineTable({
    id,
    user_id: int.references('users').fixed,
    order_id: int.references('orders', { onDelete: 'cascade' }).fixed,
    kind: oneOf(['order_expiring', 'order_unclaimed']).fixed,
    /** `push_configs.id`, or 0. */
    push_config_id: int.fixed,
    state: oneOf(['pending', 'sending', 'sent', 'failed']),
    attempts: int,
    due_at: instant,
    error: text.nullable,
    created_at: instant.fixed,
    updated_at: instant,
  })
    .unique('order_id', 'kind', 'push_config_id')
    .index('notifications_due', ['due_at'], "state = 'pending'"),
}
