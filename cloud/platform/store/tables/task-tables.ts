import type { Generated } from 'kysely'
import type { Fixed, Instant } from './columns.ts'

/** What runs in the background, in which process, and what it tells customers. */
export interface TaskTables {
  /** One row a task: whoever holds it runs it, until the lease ends. */
  task_schedules: {
    task: Fixed<string>
    next_due_at: Instant
    run_id: string | null
    lease_until: Instant | null
  }
  task_runs: {
    id: Fixed<string>
    task: Fixed<string>
    process_id: Fixed<string>
    /** STARTED | SUCCESS | FAILURE */
    state: string
    /** JSON array of ids. */
    affected_ids: string | null
    error: string | null
    started_at: Fixed<Instant>
    finished_at: Instant | null
  }
  workers: {
    process_id: Fixed<string>
    name: Fixed<string>
    pid: Fixed<number>
    started_at: Fixed<Instant>
    heartbeat_at: Instant
  }
  /** Notices to customers, one for each device; a customer without any has one without. */
  notifications: {
    id: Generated<number>
    user_id: Fixed<number>
    order_id: Fixed<number>
    /** order_expiring | order_unclaimed */
    kind: Fixed<string>
    /** `push_configs.id`, or 0. */
    push_config_id: Fixed<number>
    /** pending | sending | sent | failed */
    state: string
    attempts: number
    due_at: Instant
    error: string | null
    created_at: Fixed<Instant>
    updated_at: Instant
  }
}
