import type { Clock } from './runtime.ts'
import { duration, prefixed, wholeNumber, type SettingsOf } from './program-settings.ts'

/** What is used of an HTTP server (`node:http`, `node:https`); named here so that the protocol itself opens nothing. */
export interface ServerLike {
  headersTimeout: number
  requestTimeout: number
  keepAliveTimeout: number
  on(event: 'connection', listener: (socket: SocketLike) => void): unknown
  on(event: 'request', listener: (request: RequestLike, response: ResponseLike) => void): unknown
  on(event: 'error', listener: () => void): unknown
}
interface SocketLike {
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
  on(event: 'close', listener: () => void): unknown
  destroy(): unknown
}
interface RequestLike {
  socket: SocketLike
  /** Whether it has come in whole. */
  complete: boolean
}
interface ResponseLike {
  on(event: 'finish', listener: () => void): unknown
}

/** The settings of a program's HTTP server, by the beginning of their names. */
export const serverBounds = (
  prefix: string,
  standard: { maxConnections: number; requestTimeoutMs: number },
) =>
  prefixed(prefix, {
    maxConnections: wholeNumber(
      [1, 1_000_000],
      standard.maxConnections,
      'The most HTTP connections at once. Beyond them the one is closed that has waited longest without a request.',
    ),
    headersTimeoutMs: duration(10_000, "How long a request's headers may take to arrive."),
    requestTimeoutMs: duration(standard.requestTimeoutMs, 'How long a whole request may take to arrive.'),
  })

export type ServerBounds = SettingsOf<ReturnType<typeof serverBounds>>

/** How often a server made by `createServer` looks for what is late: its option `connectionsCheckingInterval`. */
export const CHECK_CONNECTIONS_MS = 2000
/**
 * Connections that may wait to be taken, of a fleet or of readers who all come back at once: Node lets 511, and who finds no
 * room tries again after 1, 3, 7, 15, 31 … s. The system's own limit (`net.core.somaxconn`) holds beside it.
 */
export const BACKLOG = 4096
/** How long a connection is kept for its next request. */
const KEEP_ALIVE_MS = 5000
/** How long the rest of a request may still come that is answered already: its sender may only then read the answer. */
const LINGER_MS = 1000

/**
 * Keeps strangers from binding what the server has: headers and requests must come in time, and there is a bound on
 * connections. Beyond it the one goes that has waited longest with no request under way; where all are at work, the new one.
 * A connection whose request is answered before it has come in whole ends soon after the answer. One that the system has no means
 * to accept is nobody's: those that come later are served.
 */
export function boundServer(server: ServerLike, bounds: ServerBounds, clock: Clock): void {
  server.headersTimeout = bounds.headersTimeoutMs
  server.requestTimeout = bounds.requestTimeoutMs
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.on('error', () => {})
  /** In the order in which they began to wait. */
  const waiting = new Map<unknown, SocketLike>()
  const busy = new Map<unknown, SocketLike>()

  server.on('connection', (socket) => {
    if (waiting.size + busy.size >= bounds.maxConnections) {
      const [longest] = waiting
      if (longest === undefined) return void socket.destroy()
      waiting.delete(longest[0])
      longest[1].destroy()
    }
    const peer = peerOf(socket)
    waiting.set(peer, socket)
    socket.on('close', () => {
      for (const all of [waiting, busy]) if (all.get(peer) === socket) all.delete(peer)
    })
  })
  server.on('request', (request, response) => {
    const { socket } = request
    const peer = peerOf(socket)
    move(peer, waiting, busy)
    response.on('finish', () => {
      move(peer, busy, waiting)
      if (!request.complete) clock.after(LINGER_MS, () => request.complete || socket.destroy())
    })
  })
}

/** By what a connection and the requests on it are told to be one: over TLS a request's socket is another object. */
const peerOf = (socket: SocketLike): unknown =>
  socket.remotePort === undefined ? socket : `${socket.remoteAddress} ${socket.remotePort}`

function move(peer: unknown, from: Map<unknown, SocketLike>, to: Map<unknown, SocketLike>): void {
  const socket = from.get(peer)
  if (socket === undefined) return
  from.delete(peer)
  to.set(peer, socket)
}
