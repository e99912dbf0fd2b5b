import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import type { Context, Hono } from 'hono'
import {
  BACKLOG,
  boundServer,
  CHECK_CONNECTIONS_MS,
  type ServerBounds,
} from '../../../protocol/model/bound-server.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'

export interface HttpServer {
  port: number
  /** Takes no new requests, waits `graceMs` for those under way, then cuts them off. */
  close(graceMs: number): Promise<void>
}

/** Rejects where the port is in use. */
export async function listen(
  app: Pick<Hono, 'fetch'>,
  { host, port, clock, bounds }: { host: string; port: number; clock: Clock; bounds: ServerBounds },
): Promise<HttpServer> {
  const serverOptions = { connectionsCheckingInterval: CHECK_CONNECTIONS_MS }
  const server = createAdaptorServer({ fetch: app.fetch, serverOptions }) as Server
  boundServer(server, bounds, clock)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    async close(graceMs) {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      const cancel = clock.after(graceMs, () => server.closeAllConnections())
      await closed
      cancel()
    },
  }
}

/**
 * Reads where a request comes from. Each trusted proxy appends one entry to `X-Forwarded-For`: the address is that many
 * entries from its end, because anything further left is of the caller's own making.
 */
export const addressReader =
  (trustedProxies: number) =>
  (c: Context): string => {
    const socket = (c.env as Partial<HttpBindings>).incoming?.socket.remoteAddress ?? 'unknown'
    const forwarded = (c.req.header('X-Forwarded-For') ?? '').split(',').map((entry) => entry.trim())
    return (trustedProxies > 0 && forwarded.at(-trustedProxies)) || socket
  }
