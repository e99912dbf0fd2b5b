import { arch, availableParallelism, freemem, loadavg, platform, release, totalmem } from 'node:os'
import { sql } from 'kysely'
import { type SystemInfo, taskNames, type WorkerStatus } from '../../../protocol/contract/diag.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { PRODUCT_VERSION } from '../../../protocol/build.ts'
import type { CloudDatabase } from '../../platform/store/database.ts'
import { SCHEMA_VERSION } from '../../platform/store/migrate.ts'
import { WORKER_TIMEOUT_MS } from '../../platform/work/workers.ts'

/** Facts that a process knows about itself. */
export interface ProcessFacts {
  pid: number
  /** The commit of the source, or `unknown`. */
  commit: string
  /** Settings that every caller may see, by name. */
  settings: Readonly<Record<string, string | number | boolean>>
  refused(): SystemInfo['refused']
  broker(): { connected: boolean; clients: number | null }
}

const MIB = 1024 * 1024
const mib = (bytes: number): number => Math.round(bytes / MIB)

/** `startedAt` is monotonic. */
export async function systemInfo(
  context: CloudContext,
  facts: ProcessFacts,
  startedAt: number,
): Promise<Omit<SystemInfo, 'settings'>> {
  const { db, runtime, settings } = context
  const now = runtime.clock.now()
  const { total } = await db.kysely
    .selectFrom('hubs')
    .select((eb) => eb.fn.countAll<number | string>().as('total'))
    .executeTakeFirstOrThrow()
  const { online } = await db.kysely
    .selectFrom('hub_sessions')
    .select((eb) => eb.fn.countAll<number | string>().as('online'))
    .where('last_heard_at', '>', now - settings.onlineWithinMs)
    .where('has_left', '=', 0)
    .executeTakeFirstOrThrow()
  const { connected, clients } = facts.broker()
  return {
    version: PRODUCT_VERSION,
    commit: facts.commit,
    node_version: process.version,
    os: {
      platform: platform(),
      release: release(),
      arch: arch(),
      cpus: availableParallelism(),
      load_average: loadavg(),
      memory_total_mb: mib(totalmem()),
      memory_used_mb: mib(totalmem() - freemem()),
    },
    process: {
      pid: facts.pid,
      uptime_seconds: Math.floor((runtime.clock.monotonic() - startedAt) / 1000),
      memory_rss_mb: mib(process.memoryUsage.rss()),
    },
    db: {
      kind: db.kind,
      size_bytes: await databaseSize(db),
      schema_version: SCHEMA_VERSION,
    },
    // An external broker does not report its clients: connected hubs count instead.
    broker: { connected, clients: clients ?? Number(online) },
    hubs: { total: Number(total), online: Number(online) },
    refused: facts.refused(),
  }
}

async function databaseSize({ kysely, kind }: CloudDatabase): Promise<number> {
  const size =
    kind === 'sqlite'
      ? sql<{ size: number | string }>`
          select page_count * page_size as size from pragma_page_count(), pragma_page_size()`
      : sql<{ size: number | string }>`select pg_database_size(current_database()) as size`
  return Number((await size.execute(kysely)).rows[0]!.size)
}

/** The live processes, oldest first, with their background work. */
export async function workerStatus({ db, runtime }: CloudContext, withTasks: boolean): Promise<WorkerStatus> {
  const now = runtime.clock.now()
  const rows = await db.kysely
    .selectFrom('workers')
    .selectAll()
    .where('heartbeat_at', '>=', now - WORKER_TIMEOUT_MS)
    .orderBy('started_at')
    .orderBy('process_id')
    .execute()
  const runs = withTasks
    ? await db.kysely
        .selectFrom('task_runs')
        .select(['task', 'process_id'])
        .where('state', '=', 'STARTED')
        .where('leased_until', '>', now)
        .execute()
    : []
  const holderOf = (name: string): string | undefined => runs.find(({ task }) => task === name)?.process_id
  return {
    status: rows.length > 0 ? 'online' : 'offline',
    workers: rows.map(({ process_id, name, pid, started_at, heartbeat_at }) => ({
      name,
      pid,
      uptime_seconds: Math.max(0, Math.floor((now - started_at) / 1000)),
      heartbeat_at: timestamp(heartbeat_at),
      ...(withTasks && {
        tasks: {
          active: taskNames.filter((task) => holderOf(task) === process_id),
          scheduled: taskNames.filter((task) => holderOf(task) === undefined),
          registered: [...taskNames],
        },
      }),
    })),
  }
}
