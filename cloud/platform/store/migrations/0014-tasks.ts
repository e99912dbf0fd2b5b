import type { CloudMigration } from './migration.ts'

/** Background tasks with their runs, the processes that run them, and notices to customers. */
export const tasks: CloudMigration = {
  name: '0014-tasks',
  statements: ({ id, int, text, end }) => [
    `create table task_schedules (
      task ${text} primary key,
      next_due_at ${int} not null,
      run_id ${text},
      lease_until ${int}
    ) ${end}`,
    `create table task_runs (
      id ${text} primary key,
      task ${text} not null,
      process_id ${text} not null,
      state ${text} not null check (state in ('STARTED', 'SUCCESS', 'FAILURE')),
      affected_ids ${text},
      error ${text},
      started_at ${int} not null,
      finished_at ${int}
    ) ${end}`,
    `create index task_runs_by_age on task_runs (started_at)`,
    `create table workers (
      process_id ${text} primary key,
      name ${text} not null,
      pid ${int} not null,
      started_at ${int} not null,
      heartbeat_at ${int} not null
    ) ${end}`,
    // An order that is deleted takes its notices with it.
    `create table notifications (
      id ${id},
      user_id ${int} not null references users (id),
      order_id ${int} not null references orders (id) on delete cascade,
      kind ${text} not null check (kind in ('order_expiring', 'order_unclaimed')),
      push_config_id ${int} not null,
      state ${text} not null check (state in ('pending', 'sending', 'sent', 'failed')),
      attempts ${int} not null,
      due_at ${int} not null,
      error ${text},
      created_at ${int} not null,
      updated_at ${int} not null,
      unique (order_id, kind, push_config_id)
    ) ${end}`,
    `create index notifications_due on notifications (due_at) where state = 'pending'`,
  ],
}
