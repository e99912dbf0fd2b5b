import { createServer, type Server, type Socket } from 'node:net'
import { bareHost } from '../../protocol/model/address.ts'
import type { Log } from '../../protocol/model/log.ts'
import { linesFrom, type Wire } from './wire.ts'
import { PseudoTerminal } from './pseudo-terminal.ts'
import { lstatSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { dirname } from 'node:path'

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

/** A serial line as a pseudo-terminal, with a link to it at `link`. */
export function mountPty(wire: Wire, link: string, log: Log): Mount & { path: string } {
  const line = new PseudoTerminal()
  const fail = (error: unknown): void =>
    log.warn({ controller: wire.controllerId, error: (error as Error).message }, 'pseudo-terminal failed')
  line.input.on('error', fail)
  try {
    linkTo(line.path, link)
  } catch (error) {
    void line.close()
    throw error
  }
  linesFrom(line.input, wire)
  const release = wire.onLine((text) => {
    try {
      // A full buffer loses the line or its end, like a UART without flow control: no program reads at the other end.
      line.write(Buffer.from(`${text}\n`))
    } catch (error) {
      fail(error)
    }
  })
  return {
    path: line.path,
    close() {
      release()
      rmSync(link, { force: true })
      return line.close()
    },
  }
}

/** Places the link at one instant. If the path exists and is not a link, it belongs to another program. */
function linkTo(target: string, link: string): void {
  mkdirSync(dirname(link), { recursive: true })
  if (lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() === false)
    throw new Error(`${link} exists and is not a link: a simulated port cannot be made there`)
  const fresh = `${link}.new`
  rmSync(fresh, { force: true })
  symlinkSync(target, fresh)
  renameSync(fresh, link)
}
