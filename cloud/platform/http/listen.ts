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
import type { Log } from '../../../protocol/model/log.ts'
import { forwardedAddress, networkOf } from '../../../protocol/model/network.ts'
import type { Clock, Runtime } from '../../../protocol/model/runtime.ts'

export interface HttpServer {
  port: number
  /**
   * Continues to serve, and ends each connection after its next answer, so that callers reconnect to another process.
   */
  drain(): void
  /** Accepts no new requests, waits `graceMs` for running ones, then aborts them. */
  close(graceMs: number): Promise<void>
}

export interface ListenOptions {
  host: string
  port: number
  runtime: Runtime
  bounds: ServerBounds
  /** Number of trusted proxies that append to `X-Forwarded-For` (`TRUSTED_PROXIES`). */
  trustedProxies?: number
}

/** Rejects if the port is in use. */
export async function listen(
  app: Pick<Hono, 'fetch'>,
  { host, port, runtime, bounds, trustedProxies = 0 }: ListenOptions,
): Promise<HttpServer> {
  const server = createAdaptorServer({ fetch: app.fetch, serverOptions }) as Server
  const bound = boundServer(server, bounds, runtime, { trustedProxies })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    drain: () => bound.drain(),
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
 * Reads the client's address from the part of `X-Forwarded-For` that trusted proxies wrote, else from the socket.
 * Without trusted proxies, calls `onUntrusted` with the socket's address for each request that has the header.
 */
export const addressReader =
  (trustedProxies: number, onUntrusted: (address: string) => void = () => {}) =>
  (c: Context): string => {
    const socket = (c.env as Partial<HttpBindings>).incoming?.socket.remoteAddress ?? 'unknown'
    const header = c.req.header('X-Forwarded-For')
    if (trustedProxies === 0 && header !== undefined) onUntrusted(socket)
    return forwardedAddress(header, trustedProxies) ?? socket
  }

/** Interval of the reminder to the operator. */
const REMIND_MS = 3_600_000

/**
 * Warns if a proxy on this machine forwards calls while `TRUSTED_PROXIES` is 0. All callers then share one network, and
 * one caller can use up everyone's limits. The first request is logged at once, later ones hourly with their count.
 */
export function untrustedProxyWarning(clock: Clock, log: Pick<Log, 'warn'>): (address: string) => void {
  let count = 0
  let warnedAt = -Infinity
  return (address) => {
    const network = networkOf(address)
    if (!network.startsWith('127.') && network !== '0:0:0:0::/64') return
    count += 1
    if (clock.monotonic() - warnedAt < REMIND_MS) return
    warnedAt = clock.monotonic()
    log.warn(
      { setting: 'TRUSTED_PROXIES', requests: count },
      'A proxy on this machine sends X-Forwarded-For, but TRUSTED_PROXIES is 0: all callers share the limits of one address. Set TRUSTED_PROXIES to the number of proxies in front of this service.',
    )
    count = 0
  }
}
