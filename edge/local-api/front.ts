import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, Server as TlsServer } from 'node:https'
import { urlHost } from '../../protocol/model/address.ts'
import { boundServer, serverOptions, type ServerBounds } from '../../protocol/model/bound-server.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { storageSentence, storageText, type StorageFault } from '../../protocol/model/storage.ts'
import { failingProbes, type Probes } from '../supervision.ts'
import type { SyncState } from '../sync/sync.ts'

export interface FrontOptions {
  hubId: number
  probes: Probes
  sync: { state(): SyncState }
  /** Version of the service. */
  version?: string
  links?: () => readonly { controller: string; up: boolean }[]
  /** Why the service must not stop now, as a sentence. */
  reasonToWait?: () => string | undefined
  /** The cloud's time if it is certain. */
  cloudTime?: () => number | undefined
  /** Why the hub cannot use its storage; undefined if it works. */
  storage?: () => StorageFault | undefined
  /** Creates the rest of the local API; called at its first request. */
  load: () => Promise<RequestListener>
}

/**
 * Answers `GET /health` for supervisors, without a token. The rest of the local API is loaded at its first
 * request, which on most days never comes: its web framework takes a tenth of the hub's memory.
 */
export function createFront(options: FrontOptions): RequestListener {
  const { hubId, probes, sync, version, links, storage, reasonToWait, cloudTime, load } = options
  let rest: Promise<RequestListener> | undefined
  return (request, response) => {
    if (request.method === 'GET' && request.url === '/health') {
      const failing = failingProbes(probes)
      const { phase, receivedMsAgo, reason } = sync.state()
      const status = failing.length === 0 ? 'ok' : 'failing'
      const fault = storage?.()
      const body = {
        status,
        hub_id: hubId,
        failing,
        sync: { phase, heard_ms_ago: receivedMsAgo, reason },
        version,
        silent_controllers: links?.().flatMap(({ controller, up }) => (up ? [] : [controller])),
        ...(reasonToWait && { reason_to_wait: reasonToWait() ?? null }),
        ...(cloudTime && { cloud_time: cloudTime() ?? null }),
        ...(fault && {
          storage: {
            ...fault,
            message: storageSentence(fault),
            remedy: storageText(fault.reason).remedy,
          },
        }),
      }
      return answer(response, failing.length === 0 ? 200 : 503, body)
    }
    // The same paths as in the cloud. People can work at the hub while the cloud is away, so this does not
    // count as failing.
    if (request.method === 'GET' && request.url === '/healthz') return answer(response, 200, { status: 'ok' })
    if (request.method === 'GET' && request.url === '/readyz') {
      const failing = failingProbes(probes)
      const isReady = failing.length === 0
      return answer(response, isReady ? 200 : 503, { status: isReady ? 'ready' : 'not ready', failing })
    }
    rest ??= load()
    rest.then(
      (listener) => listener(request, response),
      () => {
        // A failed load may succeed the next time, for example after a disk error.
        rest = undefined
        answer(response, 500, { error: { code: 'internal_error', message: 'The hub failed to answer.' } })
      },
    )
  }
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  response.end(JSON.stringify(body))
}

export interface Listener {
  /** The address, for example `http://127.0.0.1:8081`. */
  url: string
  /** Uses another certificate from now on. Throws if the certificate cannot be used. Does nothing for http. */
  renew(tls: { cert: string | undefined; key: string | undefined }): void
  /** Resolves when its port is free. */
  close(): Promise<void>
}

export interface ListenOptions {
  host: string
  port: number
  /** The setting of `port` (default PORT). */
  setting?: string
  /** PEM of a certificate and its key: the listener then uses https only. */
  cert?: string | undefined
  key?: string | undefined
  bounds: ServerBounds
  runtime: Runtime
}

/** Listens, and resolves when it does. If it cannot listen, it rejects with a sentence that names the setting. */
export function listen(
  { host, port, setting = 'PORT', cert, key, bounds, runtime }: ListenOptions,
  answer: RequestListener,
): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const tls = cert !== undefined && { cert, key }
    const server = tls
      ? usable(tls, () => createTlsServer({ ...serverOptions, ...tls }, answer))
      : createServer(serverOptions, answer)
    boundServer(server, bounds, runtime)
    const fail = (error: NodeJS.ErrnoException): void =>
      reject(new Error(reasonOf(error, { host, port, setting }), { cause: error }))
    server.once('error', fail)
    server.listen({ port, host }, () => {
      server.off('error', fail)
      const address = server.address()
      const actual = typeof address === 'object' && address ? address.port : port
      resolve({
        url: `${tls ? 'https' : 'http'}://${urlHost(host)}:${actual}`,
        renew({ cert, key }) {
          if (server instanceof TlsServer) usable({ cert, key }, () => server.setSecureContext({ cert, key }))
        },
        close: () => new Promise((resolve) => void server.close(() => resolve())),
      })
    })
  })
}

/** Uses a certificate and its key. Node takes an empty text as no certificate: then each connection would fail. */
function usable<T>(tls: { cert: string | undefined; key: string | undefined }, use: () => T): T {
  try {
    if (!tls.cert || !tls.key) throw new Error('a file is empty')
    return use()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`LOCAL_CERT and LOCAL_KEY cannot be used: ${why}`, { cause: error })
  }
}

function reasonOf(
  error: NodeJS.ErrnoException,
  { host, port, setting }: { host: string; port: number; setting: string },
): string {
  if (error.code === 'EADDRINUSE') return `port ${port} of ${host} is in use: set ${setting} to another one`
  if (error.code === 'EACCES')
    return `port ${port} may not be used by this user: set ${setting} to another one`
  const its = setting.replace('PORT', 'HOST')
  return `the local API cannot listen at ${host}:${port}, as ${its} and ${setting} say: ${error.message}`
}

/** Whether `listen` has failed because the port is in use, or forbidden for this user. */
export const isRefusedPort = (error: unknown): boolean =>
  ['EADDRINUSE', 'EACCES'].includes(
    String(((error as Error).cause as NodeJS.ErrnoException | undefined)?.code),
  )

/** Answers `GET /metrics`, and the front's health paths, for monitoring. */
export const metricsListener =
  (
    front: RequestListener,
    read: () => Promise<{ type: string; text: string }>,
    isAllowedHost: (header: string | undefined) => boolean,
  ): RequestListener =>
  (request, response) => {
    const { method, url = '', headers } = request
    if (method === 'GET' && url === '/metrics' && !isAllowedHost(headers.host))
      return answer(response, 403, {
        error: { code: 'forbidden', message: 'This host name is not allowed.' },
      })
    if (method === 'GET' && url === '/metrics')
      return void read().then(
        ({ type, text }) => response.writeHead(200, { 'content-type': type }).end(text),
        () => answer(response, 500, { error: { code: 'internal_error', message: 'The metrics failed.' } }),
      )
    if (/^\/(health|healthz|readyz)$/.test(url)) return front(request, response)
    answer(response, 404, { error: { code: 'not_found', message: 'This listener serves /metrics only.' } })
  }
