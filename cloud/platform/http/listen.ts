import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import type { Context, Hono } from 'hono'
import {
  BACKLOG,
  boundServer,
  serverOptions,
  type ServerBounds,
} from '../../../protocol/model/bound-server.ts'
import { forwardedAddress } from '../../../protocol/model/network.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'

export interface HttpServer {
  port: number
  /** Takes no new requests, waits `graceMs` for those under way, then cuts them off. */
  close(graceMs: number): Promise<void>
}

export interface ListenOptions {
  host: string
  port: number
  runtime: Runtime
  bounds: ServerBounds
  /** Proxies whose entry in `X-Forwarded-For` is believed (`TRUSTED_PROXIES`). */
  trustedProxies?: number
}

/** Rejects where the port is in use. */
export async function listen(
  app: Pick<Hono, 'fetch'>,
  { host, port, runtime, bounds, trustedProxies = 0 }: ListenOptions,
): Promise<HttpServer> {
  const server = createAdaptorServer({ fetch: app.fetch, serverOptions }) as Server
  boundServer(server, bounds, runtime, { trustedProxies })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    async close(graceMs) {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      const cancel = runtime.clock.after(graceMs, () => server.closeAllConnections())
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
    return forwardedAddress(c.req.header('X-Forwarded-For'), trustedProxies) ?? socket
  }
