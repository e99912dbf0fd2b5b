import { createAdaptorServer } from '@hono/node-server'
import type { Hono } from 'hono'
import { chmodSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'

export interface OwnerSocket {
  close(): void
}

/** Serves an interface at a Unix socket that only its owner may use. */
export function listenAtSocket(app: Hono, socket: string): Promise<OwnerSocket> {
  const server = createAdaptorServer({ fetch: app.fetch }) as Server
  // Removes the socket of an earlier start that was killed.
  rmSync(socket, { force: true })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(socket, () => {
      chmodSync(socket, 0o600)
      resolve({
        close() {
          server.close()
          server.closeAllConnections()
        },
      })
    })
  })
}
