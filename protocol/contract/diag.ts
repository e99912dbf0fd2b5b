import { z } from 'zod'
import { Id, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** The background tasks, as their triggers are called (C §4.1). */
export const taskNames = [
  'bestsellers',
  'update-timed-out-orders',
  'delete_expired_orders',
  'notify-about-expiring-orders',
  'update-unclaimed-orders-to-failed',
  'notify-about-unclaimed-orders',
] as const
export type TaskName = (typeof taskNames)[number]

/** `affected_ids` are orders; of `bestsellers`, products. */
export const TaskResult = z
  .object({
    task_id: z.string(),
    task: z.enum(taskNames),
    state: z.enum(['PENDING', 'STARTED', 'SUCCESS', 'FAILURE']),
    result: z.object({ processed: z.int(), affected_ids: z.array(Id) }).nullable(),
    error: z.string().nullable(),
    started_at: Timestamp.nullable(),
    finished_at: Timestamp.nullable(),
  })
  .meta({ id: 'TaskResult' })
export type TaskResult = z.infer<typeof TaskResult>

export const SystemInfo = z
  .object({
    version: z.string(),
    /** The source's, or `unknown`. */
    commit: z.string(),
    node_version: z.string(),
    os: z.object({
      platform: z.string(),
      release: z.string(),
      arch: z.string(),
      cpus: z.int(),
      load_average: z.array(z.number()),
      memory_total_mb: z.int(),
      memory_used_mb: z.int(),
    }),
    process: z.object({ pid: z.int(), uptime_seconds: z.int(), memory_rss_mb: z.int() }),
    db: z.object({ kind: z.enum(['sqlite', 'postgres']), size_bytes: z.int(), schema_version: z.string() }),
    broker: z.object({ connected: z.boolean(), clients: z.int() }),
    hubs: z.object({ total: z.int(), online: z.int() }),
    /** How often this process has refused somebody since its start. */
    refused: z.object({
      /** 401: a key or token that is wrong, expired or revoked. */
      http_credential: z.int(),
      /** 403. */
      http_right: z.int(),
      /** At the embedded broker. */
      mqtt_login: z.int(),
      mqtt_topic: z.int(),
      mqtt_packet: z.int(),
      /** Of hubs: not as it should be. */
      hub_message: z.int(),
      /** Hellos of hubs whose identity another hub has. */
      hub_identity: z.int(),
    }),
    /** By name; what is secret is not there. */
    settings: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  })
  .meta({ id: 'SystemInfo' })
export type SystemInfo = z.infer<typeof SystemInfo>

export const WorkerStatus = z
  .object({
    status: z.enum(['online', 'offline']),
    workers: z.array(
      z.object({
        name: z.string(),
        pid: z.int(),
        uptime_seconds: z.int(),
        heartbeat_at: Timestamp,
        tasks: z
          .object({
            active: z.array(z.string()),
            scheduled: z.array(z.string()),
            registered: z.array(z.string()),
          })
          .optional(),
      }),
    ),
  })
  .meta({ id: 'WorkerStatus' })
export type WorkerStatus = z.infer<typeof WorkerStatus>

export const LogEntry = z
  .object({
    name: z.string(),
    /** From the log folder; takes its place in `path` and `file`. */
    path: z.string(),
    is_dir: z.boolean(),
    /** Bytes. */
    size: z.int(),
    modified_at: Timestamp,
  })
  .meta({ id: 'LogEntry' })
export type LogEntry = z.infer<typeof LogEntry>

/** Below the log folder. */
const LogPath = z.string().min(1).max(1000)
const trigger = {
  auth: { kind: 'diag', scope: 'diag:write' },
  response: TaskResult,
  tag: 'Background tasks',
  description:
    'Runs the task and answers with what it did. A task runs once at a time, over all processes: while it is under way, the answer is that run.',
} as const

/** C §4.1. */
export const diagRoutes = defineRoutes(
  { interface: 'diag', auth: { kind: 'diag', scope: 'diag:read' }, rate: 'standard', tag: 'Diagnostics' },
  {
    'diag.sysinfo': {
      at: 'GET /diag/sysinfo',
      query: z.object({ with_settings: z.boolean().default(false) }),
      response: SystemInfo,
      summary: 'The service, its machine, its database and its hubs',
    },
    'diag.worker': {
      at: 'GET /diag/worker',
      query: z.object({ with_tasks: z.boolean().default(false) }),
      response: WorkerStatus,
      summary: 'The processes of the service, and what they do in the background',
    },
    'diag.logs.list': {
      at: 'GET /diag/logs/list',
      query: z.object({
        path: LogPath.default('.'),
        order: z.enum(['date', 'name', 'size']).default('date'),
        reverse: z.boolean().default(true),
      }),
      response: z.array(LogEntry),
      errors: ['not_found'],
      summary: 'The log files of this process',
    },
    'diag.logs.view': {
      at: 'GET /diag/logs/view',
      query: z.object({
        /** The last so many; 0 is all, up to 1 MiB. */
        lines: z.int().min(0).default(0),
        /** Default: the one written last. */
        file: LogPath.optional(),
      }),
      response: z.object({
        file: z.string(),
        lines: z.array(z.string()),
        /** The file has more before the first of them. */
        truncated: z.boolean(),
      }),
      errors: ['not_found'],
      summary: 'The end of a log file',
    },
    'diag.logs.stream': {
      at: 'GET /diag/logs/stream',
      query: z.object({ file: LogPath.optional() }),
      response: z.instanceof(ReadableStream<Uint8Array>),
      produces: 'text/event-stream',
      errors: ['not_found'],
      summary: 'What is being written to a log file, as server-sent events',
      description: 'Each event is a line. A comment every 15 s keeps the connection alive.',
    },
    'diag.logs.monitor': {
      at: 'GET /diag/logs/monitor',
      // A browser that opens an address sends no key; the page asks for one, and shows nothing without it.
      auth: { kind: 'none' },
      rate: 'open',
      response: z.string(),
      produces: 'text/html',
      summary: 'A page that shows the stream',
      description:
        'Takes no credential. What the page shows it reads with the key that is typed in there; the scope is `diag:read`.',
    },
    'diag.tasks.bestsellers': {
      at: 'GET /diag/bg_tasks/bestsellers',
      ...trigger,
      query: z.object({ sync_mode: z.boolean().default(false) }),
      alsoStatus: 202,
      summary: 'Mark the products that sell best',
      description:
        'With `sync_mode` the answer (200) waits for the end; without, it comes at once (202). A task runs once at a time, over all processes.',
    },
    'diag.tasks.update_timed_out_orders': {
      at: 'GET /diag/bg_tasks/update-timed-out-orders',
      ...trigger,
      summary: 'End orders whose preparation has taken too long',
    },
    'diag.tasks.delete_expired_orders': {
      at: 'GET /diag/bg_tasks/delete_expired_orders',
      ...trigger,
      summary: 'Expire carts that were left alone, and delete those that expired long ago',
    },
    'diag.tasks.notify_about_expiring_orders': {
      at: 'GET /diag/bg_tasks/notify-about-expiring-orders',
      ...trigger,
      summary: 'Tell customers whose cart is about to expire, once',
    },
    'diag.tasks.update_unclaimed_orders_to_failed': {
      at: 'GET /diag/bg_tasks/update-unclaimed-orders-to-failed',
      ...trigger,
      summary: 'End orders that nobody has taken',
    },
    'diag.tasks.notify_about_unclaimed_orders': {
      at: 'GET /diag/bg_tasks/notify-about-unclaimed-orders',
      ...trigger,
      summary: 'Tell customers whose order waits in its bin, once',
    },
  },
)
