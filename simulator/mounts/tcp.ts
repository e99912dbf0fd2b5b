import { createServer, type Server, type Socket } from 'node:net'
import { bareHost } from '../../protocol/model/address.ts'
import type { Log } from '../../protocol/model/log.ts'
import { linesFrom, type Wire } from './wire.ts'

export interface Mount {
  close(): Promise<void>
}

/** Splits `tcp:host:port` or `tcp://host:port`, with an IPv6 address in brackets; undefined for other texts. */
export function tcpAddress(port: string): { host: string; port: number } | undefined {
  const match = /^tcp:(?:\/\/)?(\[[^\]]+\]|[^:/]+):(\d{1,5})$/.exec(port)
  return match ? { host: bareHost(match[1]!), port: Number(match[2]) } : undefined
}

/** A serial line as a TCP server. The latest connection has the line, like the latest program that opened a port. */
export async function mountTcp(
  wire: Wire,
  address: { host: string; port: number },
  log: Log,
): Promise<Mount & { port: number }> {
  let current: Socket | undefined
  const release = wire.onLine((line) => current?.write(`${line}\n`))
  const server: Server = createServer((socket) => {
    current?.destroy()
    current = socket
    socket.setNoDelay(true)
    linesFrom(socket, wire)
    socket.on('error', (error) =>
      log.debug({ controller: wire.controllerId, error: error.message }, 'TCP line broke'),
    )
    socket.on('close', () => {
      if (current === socket) current = undefined
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(address.port, address.host, resolve)
  })
  const bound = server.address()
  return {
    port: typeof bound === 'object' && bound ? bound.port : address.port,
    close() {
      release()
      current?.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
