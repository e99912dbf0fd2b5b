import type { CloudContext } from '../../platform/context.ts'
import { reply, type Handlers } from '../../platform/http/handler.ts'
import { openLogFolder, streamLines } from './logs.ts'
import { monitorPage, monitorPolicy } from './monitor-page.ts'
import { type ProcessFacts, systemInfo, workerStatus } from './system-info.ts'

const headers = { 'Cache-Control': 'no-store' }

/** C §4.1. */
export function diagHandlers(
  context: CloudContext,
  facts: ProcessFacts,
  logFolder: string,
): Handlers<
  | 'diag.sysinfo'
  | 'diag.worker'
  | 'diag.logs.list'
  | 'diag.logs.view'
  | 'diag.logs.stream'
  | 'diag.logs.monitor'
> {
  const { clock } = context.runtime
  const startedAt = clock.monotonic()
  const logs = openLogFolder(logFolder)
  return {
    async 'diag.sysinfo'({ query }) {
      const info = await systemInfo(context, facts, startedAt)
      return reply({ ...info, ...(query.with_settings && { settings: { ...facts.settings } }) }, { headers })
    },
    async 'diag.worker'({ query }) {
      return reply(await workerStatus(context, query.with_tasks), { headers })
    },
    async 'diag.logs.list'({ query }) {
      return reply(await logs.list(query), { headers })
    },
    async 'diag.logs.view'({ query }) {
      return reply(await logs.view(query.file, query.lines), { headers })
    },
    async 'diag.logs.stream'({ query }) {
      const { path } = await logs.find(query.file)
      // A buffering proxy would buffer this endless stream.
      return reply(streamLines(path, clock), { headers: { ...headers, 'X-Accel-Buffering': 'no' } })
    },
    'diag.logs.monitor': () =>
      Promise.resolve(
        reply(monitorPage, { headers: { ...headers, 'Content-Security-Policy': monitorPolicy } }),
      ),
  }
}
