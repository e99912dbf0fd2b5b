import { Budget, type Hold } from './budget.ts'
import {
  answerClientError,
  headProblem,
  refuse,
  type ResponseLike,
  type SocketLike,
} from './http-refusals.ts'
import { forwardedAddress, networkOf } from './network.ts'
import { duration, limits, prefixed, wholeNumber, type SettingsOf } from './program-settings.ts'
import type { Clock, Runtime } from './runtime.ts'

/** The used part of an HTTP server (`node:http`, `node:https`); named here so that the protocol itself opens nothing. */
export interface ServerLike {
  headersTimeout: number
  requestTimeout: number
  keepAliveTimeout: number
  timeout: number
  on(event: 'connection', listener: (socket: SocketLike) => void): unknown
  on(event: 'request', listener: RequestListener): unknown
  on(event: 'checkExpectation', listener: RequestListener): unknown
  on(event: 'connect', listener: (request: RequestLike, socket: unknown) => void): unknown
  on(event: 'clientError', listener: (error: Error, socket: unknown) => void): unknown
  on(event: 'error', listener: () => void): unknown
  listeners(event: 'request'): unknown[]
  removeAllListeners(event: 'request'): unknown
}
interface RequestLike {
  socket: SocketLike
  /** The whole request has arrived. */
  complete: boolean
  url?: string | undefined
  httpVersion: string
  headers: Record<string, string | string[] | undefined>
  rawHeaders: string[]
}
type RequestListener = (request: RequestLike, response: ResponseLike) => void

/** The settings of a program's HTTP server, by the beginning of their names. */
export const serverBounds = (
  prefix: string,
  standard: { maxConnections: number; connectionsPerNetwork: number; requestTimeoutMs: number },
) =>
  limits(
    'HTTP',
    prefixed(prefix, {
      maxConnections: wholeNumber(
        [1, 1_000_000],
        standard.maxConnections,
        'Maximum number of HTTP connections. Beyond it, a connection of the network with the most connections ends: an idle one, else the oldest busy one.',
      ),
      connectionsPerNetwork: wholeNumber(
        [1, 1_000_000],
        standard.connectionsPerNetwork,
        'The same, of one network (IPv4 /32, IPv6 /64). Beyond it, an earlier connection of this network ends.',
      ),
      replacedPerSecond: wholeNumber(
        [1, 1_000_000],
        300,
        'Number of busy connections that one network may replace in a second. A further new connection ends at once.',
      ),
      headersTimeoutMs: duration(10_000, "Maximum time for a request's headers to arrive."),
      requestTimeoutMs: duration(standard.requestTimeoutMs, 'Maximum time for a whole request to arrive.'),
      idleTimeoutMs: duration(
        120_000,
        'Time without a byte in either direction after which a connection ends, also while an answer is being sent.',
      ),
    }),
  )

export type ServerBounds = SettingsOf<ReturnType<typeof serverBounds>>

/** The largest block of headers: a token with many roles has 17 kB. */
export const MAX_HEADER_BYTES = 32 * 1024

/**
 * The options of every HTTP server. Node checks for late requests at this interval. `boundServer` checks `Host` itself,
 * because Node refuses without a body.
 */
export const serverOptions = {
  connectionsCheckingInterval: 2000,
  maxHeaderSize: MAX_HEADER_BYTES,
  requireHostHeader: false,
} as const

/**
 * Connections that wait to be accepted when a whole fleet returns at once. Node's default is 511; a client without room
 * retries after 1, 3, 7, 15, 31 … s. The system's own limit (`net.core.somaxconn`) also applies.
 */
export const BACKLOG = 4096
/** How long an idle connection stays open for its next request. */
const KEEP_ALIVE_MS = 5000
/**
 * How long the rest of an answered request may still arrive. Many clients read the answer only after they have sent
 * everything.
 */
const LINGER_MS = 1000

export interface BoundServer {
  /** The budget of its connections. */
  budget: Budget
  /** From now on each connection ends after its next answer. */
  drain(): void
}

/** A connection, and its part of the budget. */
interface Connection {
  socket: SocketLike
  network: string
  hold: Hold
  /** The answer that is being sent. */
  response?: ResponseLike | undefined
}

/**
 * Bounds a server made with `serverOptions` against callers without a credential. Headers and requests must arrive in
 * time. Each network has a share of the connections (`Budget`). Busy connections make room too, because the sender of a
 * slow request decides how long it is busy. Malformed requests get the usual JSON error. If an answer is sent before
 * the whole request has arrived, the connection ends soon after.
 *
 * Call it after the server has its request listener. With `trustedProxies`, a request counts for the network that the
 * proxy names in `X-Forwarded-For`.
 */
export function boundServer(
  server: ServerLike,
  bounds: ServerBounds,
  { clock, random }: Runtime,
  { trustedProxies = 0 }: { trustedProxies?: number } = {},
): BoundServer {
  server.headersTimeout = bounds.headersTimeoutMs
  server.requestTimeout = bounds.requestTimeoutMs
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.timeout = bounds.idleTimeoutMs
  // If the system cannot accept a connection, the server must continue.
  server.on('error', () => {})
  const budget = new Budget({
    total: bounds.maxConnections,
    shares: { network: bounds.connectionsPerNetwork },
    atShare: 'replace',
  })
  const replacements = new Replacements(clock, bounds.replacedPerSecond)
  const connections = new Map<unknown, Connection>()
  let isDraining = false

  server.on('connection', (socket) => {
    const network = networkOf(socket.remoteAddress ?? 'unknown')
    const isFull = budget.usedBy('network', network) >= bounds.connectionsPerNetwork
    // Replacing an idle connection is free.
    if (isFull && !budget.hasIdle('network', network) && !replacements.take(network))
      return void socket.destroy()
    const { hold } = budget.take({ network }, { evict: () => void socket.destroy() })
    if (!hold) return void socket.destroy()
    hold.setIdle(true)
    const peer = peerOf(socket)
    connections.set(peer, { socket, network, hold })
    socket.on('close', () => {
      hold.release()
      if (connections.get(peer)?.socket === socket) connections.delete(peer)
    })
  })

  const serve = server.listeners('request') as RequestListener[]
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    const connection = connections.get(peerOf(request.socket))
    begin(connection, request, response)
    if (isDraining) response.shouldKeepAlive = false
    response.on('finish', () => {
      end(connection)
      if (!request.complete) clock.after(LINGER_MS, () => request.complete || request.socket.destroy())
    })
    const problem = headProblem(request)
    if (problem) return refuse(response, { code: 'bad_request', message: problem }, random)
    // HTTP/1.0 has no Host (RFC 9112 §3.2); request handlers build URLs with it.
    request.headers['host'] ||= 'localhost'
    for (const listener of serve) listener(request, response)
  })
  server.on('checkExpectation', (_request, response) =>
    refuse(response, { code: 'expectation_failed' }, random),
  )
  server.on('connect', (_request, socket) => failed(socket, new Error('a proxy is not served')))
  server.on('clientError', (error, socket) => failed(socket, error))

  function failed(socket: unknown, error: Error): void {
    const isAnswering = connections.get(peerOf(socket as SocketLike))?.response?.headersSent === true
    answerClientError(socket, { error, isAnswering }, { clock, random })
  }

  function begin(connection: Connection | undefined, { headers }: RequestLike, response: ResponseLike): void {
    if (!connection) return
    connection.response = response
    connection.hold.setIdle(false)
    if (trustedProxies === 0) return
    const forwarded = forwardedAddress(headers['x-forwarded-for'], trustedProxies)
    if (forwarded !== undefined) connection.hold.moveTo({ network: networkOf(forwarded) })
  }

  function end(connection: Connection | undefined): void {
    if (!connection) return
    connection.response = undefined
    if (trustedProxies > 0) connection.hold.moveTo({ network: connection.network })
    connection.hold.setIdle(true)
  }

  return { budget, drain: () => (isDraining = true) }
}

/**
 * Bounds how fast a network at its share replaces its own busy connections. Otherwise a flood that reconnects at once
 * would take the server's time from all others.
 */
class Replacements {
  readonly #clock: Clock
  readonly #perSecond: number
  readonly #counts = new Map<string, number>()
  #second = 0

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock
    this.#perSecond = perSecond
  }

  take(network: string): boolean {
    const second = Math.floor(this.#clock.monotonic() / 1000)
    if (second !== this.#second) this.#counts.clear()
    this.#second = second
    const count = (this.#counts.get(network) ?? 0) + 1
    this.#counts.set(network, count)
    return count <= this.#perSecond
  }
}

/** Identifies a connection by its peer: over TLS, requests and connections have different socket objects. */
const peerOf = (socket: SocketLike): unknown =>
  socket.remotePort === undefined ? socket : `${socket.remoteAddress} ${socket.remotePort}`
