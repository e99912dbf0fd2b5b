import { createServer, type Server, type Socket } from 'node:net'
import { bareHost } from '../../protocol/model/address.ts'
import type { Log } from '../../protocol/model/log.ts'
import { linesFrom, type Wire } from './wire.ts'
import { lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { ReadStream } from 'node:tty'

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

interface NodePty {
  /** Not in node-pty's types: a pseudo-terminal without a program. Both descriptors are non-blocking. */
  native: { open(columns: number, rows: number): { master: number; slave: number; pty: string } }
}

/**
 * A serial line as a pseudo-terminal, with a link to it at `link`. The slave's descriptor stays open. Otherwise the
 * master would read EIO whenever the hub closes the port, and the pair would be lost.
 */
export function mountPty(wire: Wire, link: string, log: Log): Mount & { path: string } {
  const { native } = createRequire(import.meta.url)('node-pty') as NodePty
  const { master, slave, pty } = native.open(80, 24)
  // Set to raw before any program opens it: a terminal that echoes would return the simulator's own lines.
  const ours = new ReadStream(slave)
  ours.setRawMode(true)
  const stream = new ReadStream(master)
  const fail = (error: Error): void =>
    log.warn({ controller: wire.controllerId, error: error.message }, 'pseudo-terminal failed')
  stream.on('error', fail)
  ours.on('error', fail)
  linesFrom(stream, wire)
  const release = wire.onLine((line) => transmit(master, `${line}\n`, fail))
  linkTo(pty, link)
  return {
    path: pty,
    close() {
      release()
      rmSync(link, { force: true })
      return new Promise((resolve) => {
        stream.once('close', () => resolve())
        stream.destroy()
        ours.destroy()
      })
    },
  }
}

/** A full buffer loses the line, like a UART without flow control: no program reads at the other end. */
function transmit(descriptor: number, text: string, fail: (error: Error) => void): void {
  try {
    writeSync(descriptor, text)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') fail(error as Error)
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
