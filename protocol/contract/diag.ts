import { z } from 'zod'
import { valuesIn, namedEnum } from '../model/named-enum.ts'
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

const TaskName = z.enum(taskNames).meta({
  id: 'TaskName',
  description: valuesIn('Background task.', {
    bestsellers: 'marks the bestsellers.',
    'update-timed-out-orders': 'ends orders whose preparation has exceeded its deadline.',
    delete_expired_orders: 'expires idle carts and deletes old ones.',
    'notify-about-expiring-orders': 'notifies customers whose cart is about to expire.',
    'update-unclaimed-orders-to-failed': 'ends orders that were not collected.',
    'notify-about-unclaimed-orders': 'notifies customers whose order waits in its bin.',
  } satisfies Record<TaskName, string>),
})
const TaskState = namedEnum('TaskState', 'State of a run.', {
  PENDING: 'the run has not started.',
  STARTED: 'the run is in progress.',
  SUCCESS: 'the run succeeded.',
  FAILURE: 'the run failed.',
})
const DatabaseKind = namedEnum('DatabaseKind', 'Kind of the database.', {
  sqlite: 'a file of this machine.',
  postgres: 'a PostgreSQL server.',
})
const WorkerState = namedEnum('WorkerState', 'State of the background work.', {
  online: 'at least one process works.',
  offline: 'no process has a recent heartbeat.',
})
const LogOrder = namedEnum('LogOrder', 'Field that files are sorted by.', {
  date: 'time of the last change.',
  name: 'name of the file.',
  size: 'size in bytes.',
})

/** `affected_ids` are orders; of `bestsellers`, products. */
export const TaskResult = z
  .object({
    task_id: z.string().describe('Id of the run.'),
    task: TaskName,
    state: TaskState,
    result: z
      .object({
        processed: z.int().describe('Number of processed rows.'),
        affected_ids: z.array(Id).describe('Numbers of the affected orders; of products for `bestsellers`.'),
      })
      .nullable()
      .describe('Result of the run; null until it succeeded.'),
    error: z.string().nullable().describe('Reason of the failure; null if it did not fail.'),
    started_at: Timestamp.nullable().describe('Start of the run (UTC); null before it.'),
    finished_at: Timestamp.nullable().describe('End of the run (UTC); null before it.'),
  })
  .meta({ id: 'TaskResult', description: 'A run of a background task.' })
export type TaskResult = z.infer<typeof TaskResult>

export const SystemInfo = z
  .object({
    version: z.string().describe('Version of the service.'),
    commit: z.string().describe('Commit of the source, or `unknown`.'),
    node_version: z.string().describe('Version of Node.'),
    os: z
      .object({
        platform: z.string().describe('Platform, such as `linux`.'),
        release: z.string().describe('Version of the kernel.'),
        arch: z.string().describe('Processor architecture, such as `x64`.'),
        cpus: z.int().describe('Number of processors.'),
        load_average: z.array(z.number()).describe('Load averages over 1, 5 and 15 minutes.'),
        memory_total_mb: z.int().describe('Memory of the machine in MiB.'),
        memory_used_mb: z.int().describe('Used memory of the machine in MiB.'),
      })
      .describe('Operating system and machine.'),
    process: z
      .object({
        pid: z.int().describe('Process id.'),
        uptime_seconds: z.int().describe('Seconds since the start of the process.'),
        memory_rss_mb: z.int().describe('Resident memory of the process in MiB.'),
      })
      .describe('This process.'),
    db: z
      .object({
        kind: DatabaseKind,
        size_bytes: z.int().describe('Size of the database in bytes.'),
        schema_version: z.string().describe('Version of the schema.'),
      })
      .describe('Database.'),
    broker: z
      .object({
        connected: z.boolean().describe('True if the cloud is connected to the broker.'),
        clients: z.int().describe('Number of connected clients at the embedded broker.'),
      })
      .describe('MQTT broker.'),
    hubs: z
      .object({
        total: z.int().describe('Number of hubs.'),
        online: z.int().describe('Number of online hubs.'),
      })
      .describe('Hubs of the installation.'),
    refused: z
      .object({
        http_credential: z.int().describe('HTTP calls with a wrong, expired or revoked key or token (401).'),
        http_right: z.int().describe('HTTP calls without the right (403).'),
        mqtt_login: z.int().describe('Refused logins at the embedded broker.'),
        mqtt_topic: z.int().describe('Refused topics at the embedded broker.'),
        mqtt_packet: z.int().describe('Refused packets at the embedded broker.'),
        hub_message: z.int().describe('Unreadable messages of hubs.'),
        hub_identity: z.int().describe('Hellos of hubs with the identity of another hub.'),
      })
      .describe('Number of refused callers since the start of the process, by cause.'),
    settings: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
      .optional()
      .describe('Settings by name, without secrets; absent unless `with_settings` is true.'),
  })
  .meta({ id: 'SystemInfo', description: 'Versions, machine, database, broker and hubs of the service.' })
export type SystemInfo = z.infer<typeof SystemInfo>

export const WorkerStatus = z
  .object({
    status: WorkerState,
    workers: z
      .array(
        z.object({
          name: z.string().describe('Name of the process.'),
          pid: z.int().describe('Process id.'),
          uptime_seconds: z.int().describe('Seconds since the start of the process.'),
          heartbeat_at: Timestamp.describe('Time of the last heartbeat (UTC).'),
          tasks: z
            .object({
              active: z.array(z.string()).describe('Work in progress.'),
              scheduled: z.array(z.string()).describe('Work that is due later.'),
              registered: z.array(z.string()).describe('Every kind of work that the process executes.'),
            })
            .optional()
            .describe('Background work of the process; absent unless `with_tasks` is true.'),
        }),
      )
      .describe('Processes of the service.'),
  })
  .meta({ id: 'WorkerStatus', description: 'Processes of the service.' })
export type WorkerStatus = z.infer<typeof WorkerStatus>

export const LogEntry = z
  .object({
    name: z.string().describe('Name of the file or folder.'),
    path: z.string().describe('Path below the log folder, for `path` and `file` of the other calls.'),
    is_dir: z.boolean().describe('True for a folder.'),
    size: z.int().describe('Size in bytes.'),
    modified_at: Timestamp.describe('Time of the last change (UTC).'),
  })
  .meta({ id: 'LogEntry', description: 'A file or folder of the logs.' })
export type LogEntry = z.infer<typeof LogEntry>

/** Below the log folder. */
const LogPath = z.string().min(1).max(1000)
const trigger = {
  auth: { kind: 'diag', scope: 'diag:write' },
  response: TaskResult,
  tag: 'Background tasks',
  description:
    'Runs the task and returns its result. A task runs once at a time, over all processes: a call during a run returns that run.',
} as const

/** C §4.1. */
export const diagRoutes = defineRoutes(
  { interface: 'diag', auth: { kind: 'diag', scope: 'diag:read' }, rate: 'standard', tag: 'Diagnostics' },
  {
    'diag.sysinfo': {
      at: 'GET /diag/sysinfo',
      query: z.object({
        with_settings: z.boolean().default(false).describe('True adds the settings, without secrets.'),
      }),
      response: SystemInfo,
      summary: 'Read versions, machine, database, broker and hubs of the service',
      description: 'The first call of a diagnosis. Secrets are removed from the settings, not masked.',
    },
    'diag.worker': {
      at: 'GET /diag/worker',
      query: z.object({
        with_tasks: z.boolean().default(false).describe('True adds the background work of each process.'),
      }),
      response: WorkerStatus,
      summary: 'List the processes of the service and their background work',
      description: '`status` is `offline` if no process has a recent heartbeat.',
    },
    'diag.logs.list': {
      at: 'GET /diag/logs/list',
      query: z.object({
        path: LogPath.default('.').describe('Folder below the log folder.'),
        order: LogOrder.default('date').describe('Field that the files are sorted by.'),
        reverse: z.boolean().default(true).describe('True sorts from newest, last or largest.'),
      }),
      response: z.array(LogEntry),
      errors: ['not_found'],
      summary: 'List the log files of this process',
      description: 'Only files inside the log folder; a path that leaves it is 404 `not_found`.',
    },
    'diag.logs.view': {
      at: 'GET /diag/logs/view',
      query: z.object({
        lines: z
          .int()
          .min(0)
          .default(0)
          .describe('Number of lines from the end; 0 is the whole file, up to 1 MiB.'),
        file: LogPath.optional().describe(
          'Path of the log file below the log folder. If it is left out: the file that was written last.',
        ),
      }),
      response: z.object({
        file: z.string().describe('Path of the log file.'),
        lines: z.array(z.string()).describe('Lines of the file, oldest first.'),
        truncated: z.boolean().describe('True if the file has more lines before these.'),
      }),
      errors: ['not_found'],
      summary: 'Read the end of a log file',
      description: 'Without parameters: the file that was written last, up to 1 MiB.',
    },
    'diag.logs.stream': {
      at: 'GET /diag/logs/stream',
      query: z.object({
        file: LogPath.optional().describe(
          'Path of the log file below the log folder. If it is left out: the file that was written last.',
        ),
      }),
      response: z.instanceof(ReadableStream<Uint8Array>),
      produces: 'text/event-stream',
      errors: ['not_found'],
      summary: 'Follow a log file live, as server-sent events',
      description: 'Each event is a line. A comment every 15 s keeps the connection alive.',
    },
    'diag.logs.monitor': {
      at: 'GET /diag/logs/monitor',
      // A browser that opens an address sends no key; the page asks for one, and shows nothing without it.
      auth: { kind: 'none' },
      rate: 'open',
      response: z.string(),
      produces: 'text/html',
      summary: 'Show the log stream on a page',
      description:
        'The page itself takes no credential. It asks for an API key with the scope `diag:read` and reads the stream with it.',
    },
    'diag.tasks.bestsellers': {
      at: 'GET /diag/bg_tasks/bestsellers',
      ...trigger,
      query: z.object({
        sync_mode: z
          .boolean()
          .default(false)
          .describe('True waits for the end of the task (200); false returns at once (202).'),
      }),
      alsoStatus: 202,
      summary: 'Mark the bestsellers',
      description: 'A task runs once at a time, over all processes: a call during a run returns that run.',
    },
    'diag.tasks.update_timed_out_orders': {
      at: 'GET /diag/bg_tasks/update-timed-out-orders',
      ...trigger,
      summary: 'End orders whose preparation has exceeded its deadline',
    },
    'diag.tasks.delete_expired_orders': {
      at: 'GET /diag/bg_tasks/delete_expired_orders',
      ...trigger,
      summary: 'Expire idle carts and delete those that expired long ago',
    },
    'diag.tasks.notify_about_expiring_orders': {
      at: 'GET /diag/bg_tasks/notify-about-expiring-orders',
      ...trigger,
      summary: 'Notify customers whose cart is about to expire, once',
    },
    'diag.tasks.update_unclaimed_orders_to_failed': {
      at: 'GET /diag/bg_tasks/update-unclaimed-orders-to-failed',
      ...trigger,
      summary: 'End orders that were not collected',
    },
    'diag.tasks.notify_about_unclaimed_orders': {
      at: 'GET /diag/bg_tasks/notify-about-unclaimed-orders',
      ...trigger,
      summary: 'Notify customers whose order waits in its bin, once',
    },
  },
)
