import { createServer, type Socket } from 'node:net'
import ssh2 from 'ssh2'
import { sshAlgorithms } from '../../protocol/management/ssh.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import type { AuthorizedKey } from './authorized-keys.ts'
import { childLog, serveConnection, type Execute, type ManagementLimits } from './connection.ts'

export interface SshServerOptions {
  /** In OpenSSH's format. */
  hostKey: string
  authorizedKeys: () => readonly AuthorizedKey[]
  execute: Execute
  limits: ManagementLimits
  clock: Clock
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
  isCaller: boolean
}

/**
 * An SSH server of one purpose. Sockets are counted from the moment they are accepted, as one that never says a word takes
 * its place too.
 */
export function createSshServer(options: SshServerOptions): SshServer {
  const { limits, clock, log } = options
  const guests = new Map<string, Guest>()
  const countOf = (isCaller: boolean) =>
    [...guests.values()].filter((guest) => guest.isCaller === isCaller).length

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
        admits: () => countOf(true) < limits.callers,
        onLogin: () => (guest.isCaller = true),
        limits,
        clock,
        log: childLog(log, { from: id }),
      })
    },
  )
  ssh.on('error', (error: Error) => log.warn({ error: error.message }, 'the SSH server failed'))

  const server = createServer({ noDelay: true }, (socket) => {
    if (countOf(false) >= limits.strangers) oldestStranger()?.socket.destroy()
    const id = `${socket.remoteAddress}:${socket.remotePort}`
    const guest: Guest = { socket, isCaller: false }
    guests.set(id, guest)
    const cancels: Cancel[] = [
      clock.after(limits.loginMs, () => {
        if (guest.isCaller) return
        log.info({ from: id }, 'ended: no login in time')
        socket.destroy()
      }),
      clock.after(limits.connectionMs, () => socket.destroy()),
    ]
    socket.on('error', () => socket.destroy())
    socket.once('close', () => {
      guests.delete(id)
      for (const cancel of cancels) cancel()
    })
    ssh.injectSocket(socket)
  })

  /** The first of them: the map keeps the order in which they came. */
  const oldestStranger = (): Guest | undefined => [...guests.values()].find((guest) => !guest.isCaller)

  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen({ host, port }, () => {
          server.off('error', reject)
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
