import { onTestFinished } from 'vitest'
import { listen, type HttpServer } from '../../cloud/platform/http/listen.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { emptySqlite } from '../world/database.ts'
import { openService, type Service } from '../world/service.ts'

/** Time that a busy machine may need, in milliseconds. */
export const PATIENCE_MS = 60_000

/** A demo service that listens at a port of this machine. It stops at the end of the test. */
export interface Served {
  at: Service
  port: number
  /** `http://127.0.0.1:PORT` */
  base: string
  /** Stops listening: the service is away. */
  leave(): Promise<void>
  /** Listens again at the same port. */
  comeBack(): Promise<void>
}

export async function serveDemo(options: Parameters<typeof openService>[1]): Promise<Served> {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const at = await openService(() => Promise.resolve(db), { isDemo: true, ...options })
  // A test that moves the clock by a day makes thousands of polls, each of which would queue it.
  await at.cloud.work.ensureRecurring()
  at.cloud.start()
  const serve = (port: number): Promise<HttpServer> =>
    listen(at.cloud.app, { host: '127.0.0.1', port, runtime: systemRuntime(), bounds: defaultLimits.http })
  let server = await serve(0)
  const { port } = server
  onTestFinished(async () => {
    await at.cloud.endStreams()
    await server.close(0)
  })
  return {
    at,
    port,
    base: `http://127.0.0.1:${port}`,
    leave: () => server.close(0),
    comeBack: async () => void (server = await serve(port)),
  }
}
