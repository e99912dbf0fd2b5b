import ssh2 from 'ssh2'
import * as files from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { sshAlgorithms, fingerprintOf } from '../../protocol/management/ssh.ts'
import type { Log } from '../../protocol/model/log.ts'
import { networkOf } from '../../protocol/model/network.ts'
import type { Cancel, Runtime } from '../../protocol/model/runtime.ts'
import type { AuthorizedKey } from './authorized-keys.ts'
import { childLog, serveConnection, type Execute, type ManagementLimits } from './connection.ts'
import { dropChance } from './drop-chance.ts'
import { newKey } from '../../protocol/management/new-key.ts'
import { storeSecret } from '../../protocol/model/stored-secret.ts'

export interface SshServerOptions {
  /** In OpenSSH's format. */
  hostKey: string
  authorizedKeys: () => readonly AuthorizedKey[]
  execute: Execute
  limits: ManagementLimits
  runtime: Runtime
  log: Log
}

const algorithms: ssh2.Algorithms = {
  kex: [...sshAlgorithms.kex],
  cipher: [...sshAlgorithms.cipher],
  hmac: [...sshAlgorithms.hmac],
  compress: [...sshAlgorithms.compress],
}

interface Guest {
  socket: Socket
  network: string
  hasExchanged: boolean
  isCaller: boolean
}

/** Minimum time between two warnings of a flood. */
const WARN_EVERY_MS = 60_000

/**
 * An SSH server for the management commands only. It counts sockets from their acceptance: a silent socket
 * also takes a place.
 */
export class SshServer {
  readonly #options: SshServerOptions
  readonly #guests = new Map<string, Guest>()
  readonly #ssh: ssh2.Server
  readonly #server = createServer({ noDelay: true }, (socket) => this.#accept(socket))
  #rejected = 0
  #warnedAt = -Infinity

  constructor(options: SshServerOptions) {
    this.#options = options
    this.#ssh = new ssh2.Server(
      { hostKeys: [options.hostKey], ident: 'larder', algorithms },
      (connection, { ip, port }) => this.#serve(connection, `${ip}:${port}`),
    )
    this.#ssh.on('error', (error: Error) =>
      options.log.warn({ error: error.message }, 'the SSH server failed'),
    )
  }

  /** Resolves with the port. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      // Also handles later errors: a connection that the system cannot accept must not end the service.
      this.#server.on('error', reject)
      this.#server.listen({ host, port }, () => {
        const address = this.#server.address()
        resolve(typeof address === 'object' && address ? address.port : port)
      })
    })
  }

  /** Accepts no more connections, and ends the open ones. */
  close(): void {
    this.#server.close()
    for (const { socket } of this.#guests.values()) socket.destroy()
  }

  #accept(socket: Socket): void {
    const { limits, log, runtime } = this.#options
    const { clock } = runtime
    const network = networkOf(socket.remoteAddress ?? '')
    socket.on('error', () => socket.destroy())
    if (!this.#hasPlace(network)) return this.#reject(socket, network)
    const id = `${socket.remoteAddress}:${socket.remotePort}`
    const guest: Guest = { socket, network, hasExchanged: false, isCaller: false }
    this.#guests.set(id, guest)
    const cancels: Cancel[] = [
      clock.after(limits.exchangeMs, () => {
        if (!guest.hasExchanged) socket.destroy()
      }),
      clock.after(limits.loginMs, () => {
        if (guest.isCaller) return
        log.info({ from: id }, 'ended: no login in time')
        socket.destroy()
      }),
      clock.after(limits.connectionMs, () => socket.destroy()),
    ]
    socket.once('close', () => {
      this.#guests.delete(id)
      for (const cancel of cancels) cancel()
    })
    this.#ssh.injectSocket(socket)
  }

  /** Whether one more connection without a login from this network is allowed. */
  #hasPlace(network: string): boolean {
    const { limits, runtime } = this.#options
    const unauthenticated = [...this.#guests.values()].filter((guest) => !guest.isCaller)
    const ofNetwork = unauthenticated.filter((guest) => guest.network === network).length
    const chance = Math.max(
      dropChance(unauthenticated.length, limits.unauthenticated),
      dropChance(ofNetwork, limits.unauthenticatedOfNetwork),
    )
    return chance === 0 || runtime.random.fraction() >= chance
  }

  #reject(socket: Socket, network: string): void {
    const { log, runtime } = this.#options
    socket.destroy()
    this.#rejected++
    const now = runtime.clock.monotonic()
    if (now - this.#warnedAt < WARN_EVERY_MS) return
    this.#warnedAt = now
    log.warn(
      { network, turnedAway: this.#rejected },
      'too many connections without a login: some are turned away',
    )
    this.#rejected = 0
  }

  #serve(connection: ssh2.Connection, id: string): void {
    const { limits, authorizedKeys, execute, runtime, log } = this.#options
    const guest = this.#guests.get(id)
    if (!guest) return void connection.end()
    serveConnection({
      connection,
      socket: guest.socket,
      authorizedKeys,
      execute,
      admits: () => [...this.#guests.values()].filter(({ isCaller }) => isCaller).length < limits.callers,
      onExchanged: () => (guest.hasExchanged = true),
      onLogin: () => (guest.isCaller = true),
      limits,
      clock: runtime.clock,
      log: childLog(log, { from: id }),
    })
  }
}

interface HostKey {
  /** In OpenSSH's format. */
  privateKey: string
  /** As in a line of `known_hosts`, after the host. */
  publicKey: string
  fingerprint: string
}

/**
 * The host key in the file at `path`, readable only by its owner. If there is none, it is created. The key is
 * the hub's identity. If it is lost, an operator must pin the new key, and until then the cloud does not
 * connect. Calls `say` if an empty file is replaced. Throws if the file is not a key, or if others may read
 * it.
 */
export function ensureHostKey(path: string, say: (sentence: string) => void): HostKey {
  const privateKey = storeSecret(files, path, newKey('larder hub').privateKey, say)
  const others = files.statSync(path).mode & 0o077
  if (others !== 0) throw new Error(`HOST_KEY: others may read ${path}: chmod 600 it, or make a new one`)
  const key = ssh2.utils.parseKey(privateKey)
  if (key instanceof Error) throw new Error(`HOST_KEY: ${path} is no private key (${key.message})`)
  if (!key.isPrivateKey()) throw new Error(`HOST_KEY: ${path} is no private key`)
  const wire = key.getPublicSSH()
  return { privateKey, publicKey: `${key.type} ${wire.toString('base64')}`, fingerprint: fingerprintOf(wire) }
}
