import { createServer, type Socket } from 'node:net'
import ssh2 from 'ssh2'
import { sshAlgorithms } from '../../protocol/management/ssh.ts'
import type { Log } from '../../protocol/model/log.ts'
import { networkOf } from '../../protocol/model/network.ts'
import type { Cancel, Runtime } from '../../protocol/model/runtime.ts'
import type { AuthorizedKey } from './authorized-keys.ts'
import { childLog, serveConnection, type Execute, type ManagementLimits } from './connection.ts'
import { dropChance } from './strangers.ts'

export interface SshServerOptions {
  /** In OpenSSH's format. */
  hostKey: string
  authorizedKeys: () => readonly AuthorizedKey[]
  execute: Execute
  limits: ManagementLimits
  runtime: Runtime
  log: Log
}

export interface SshServer {
  /** Resolves with the port. */
  listen(host: string, port: number): Promise<number>
  /** Takes no more connections, and ends those that there are. */
  close(): void
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

/** Floods are told of so often. */
const TOLD_EVERY_MS = 60_000

/**
 * An SSH server of one purpose. Sockets are counted from the moment they are accepted, as one that never says a word takes
 * its place too.
 */
export function createSshServer(options: SshServerOptions): SshServer {
  const { limits, log } = options
  const { clock, random } = options.runtime
  const guests = new Map<string, Guest>()
  const callers = (): number => [...guests.values()].filter((guest) => guest.isCaller).length
  let turnedAway = 0
  let toldAt = -Infinity

  /** Whether there is a place for one more stranger of this network. */
  function hasPlace(network: string): boolean {
    const strangers = [...guests.values()].filter((guest) => !guest.isCaller)
    const ofOne = strangers.filter((guest) => guest.network === network).length
    const chance = Math.max(
      dropChance(strangers.length, limits.strangers),
      dropChance(ofOne, limits.strangersOfOne),
    )
    return chance === 0 || random.fraction() >= chance
  }

  function turnAway(socket: Socket, network: string): void {
    socket.destroy()
    turnedAway++
    if (clock.monotonic() - toldAt < TOLD_EVERY_MS) return
    toldAt = clock.monotonic()
    log.warn({ network, turnedAway }, 'too many connections without a login: some are turned away')
    turnedAway = 0
  }

  const ssh = new ssh2.Server(
    { hostKeys: [options.hostKey], ident: 'larder', algorithms },
    (connection, { ip, port }) => {
      const id = `${ip}:${port}`
      const guest = guests.get(id)
      if (!guest) return void connection.end()
      serveConnection({
        connection,
        socket: guest.socket,
        authorizedKeys: options.authorizedKeys,
        execute: options.execute,
        admits: () => callers() < limits.callers,
        onExchanged: () => (guest.hasExchanged = true),
        onLogin: () => (guest.isCaller = true),
        limits,
        clock,
        log: childLog(log, { from: id }),
      })
    },
  )
  ssh.on('error', (error: Error) => log.warn({ error: error.message }, 'the SSH server failed'))

  const server = createServer({ noDelay: true }, (socket) => {
    const network = networkOf(socket.remoteAddress ?? '')
    socket.on('error', () => socket.destroy())
    if (!hasPlace(network)) return turnAway(socket, network)
    const id = `${socket.remoteAddress}:${socket.remotePort}`
    const guest: Guest = { socket, network, hasExchanged: false, isCaller: false }
    guests.set(id, guest)
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
      guests.delete(id)
      for (const cancel of cancels) cancel()
    })
    ssh.injectSocket(socket)
  })

  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        // Also later: a connection that the system has no means to accept must not end the service.
        server.on('error', reject)
        server.listen({ host, port }, () => {
          const address = server.address()
          resolve(typeof address === 'object' && address ? address.port : port)
        })
      }),
    close() {
      server.close()
      for (const { socket } of guests.values()) socket.destroy()
    },
  }
}
