import type { HttpServer } from '../../cloud/platform/http/listen.ts'
import { listen } from '../../cloud/platform/http/listen.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { emptySqlite, type OpenDatabase } from '../world/database.ts'
import { openService, type Service } from '../world/service.ts'

/** The whole service with its pages at an address of this machine. */
export interface ServedService {
  at: Service
  base: string
  /** Closes its address, and opens the same address again. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

type Options = Parameters<typeof openService>[1]

export const openSqliteService: OpenDatabase = async () =>
  openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })

export async function serveService(options: Options, open = openSqliteService): Promise<ServedService> {
  const at = await openService(open, { isDemo: true, ...options })
  at.cloud.start()
  const serve = (port: number): Promise<HttpServer> =>
    listen(at.cloud.app, { host: '127.0.0.1', port, runtime: systemRuntime(), bounds: defaultLimits.http })
  let server = await serve(0)
  const { port } = server
  return {
    at,
    base: `http://127.0.0.1:${port}`,
    stop: () => server.close(0),
    async start() {
      server = await serve(port)
    },
    async close() {
      await at.cloud.endStreams()
      await server.close(0)
    },
  }
}
