import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Clock } from '../../protocol/model/runtime.ts'

/** `up`: from the client to the server; `down`: back. */
export type Direction = 'up' | 'down'

export interface Proxy {
  port: number
  /** Ends every connection; bytes in transit are lost. */
  cut(): void
  /** Holds back all bytes of one direction, or of both, for `forMs`. Connections stay open. */
  stall(directions: readonly Direction[], forMs: number): void
  /** Each chunk arrives `byMs` later, for `forMs`. */
  delay(byMs: number, forMs: number): void
  /** From now on each direction of each connection carries at most so many bytes a second. */
  throttle(bytesPerSecond: number): void
  /** Ends every connection, and refuses new ones. */
  bar(): void
  /** Ends all interference: new connections are accepted. */
  clearFaults(): void
  close(): Promise<void>
}

interface ProxyOptions {
  /** The port that connections are led to, of 127.0.0.1 unless told. */
  target: number
  host?: string
  clock: Clock
  /** Called for each connection. The returned function gets each chunk: `up` when it arrives, `down` when it is sent on. */
  listenIn?: () => (direction: Direction, chunk: Buffer) => void
}

/** A proxy before a server that can cut, refuse, hold back and slow down connections. Bytes keep their order. */
export async function startProxy({
  target,
  host = '127.0.0.1',
  clock,
  listenIn,
}: ProxyOptions): Promise<Proxy> {
  const open = new Set<Socket>()
  const line: Line = {
    clock,
    blockedUntil: { up: 0, down: 0 },
    slow: { byMs: 0, until: 0 },
    bytesPerMs: Infinity,
  }
  let isBarred = false

  const server = createServer({ noDelay: true }, (near) => {
    if (isBarred) return void near.destroy()
    const far = connect({ port: target, host, noDelay: true })
    const hear = listenIn?.() ?? (() => {})
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
    }
    lead(line, near, far, 'up', (chunk) => hear('up', chunk))
    lead(line, far, near, 'down', (chunk) => hear('down', chunk))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  const cut = (): void => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    stall(directions, forMs) {
      for (const direction of directions) line.blockedUntil[direction] = clock.monotonic() + forMs
    },
    delay(byMs, forMs) {
      line.slow = { byMs, until: clock.monotonic() + forMs }
    },
    throttle(bytesPerSecond) {
      line.bytesPerMs = bytesPerSecond / 1000
    },
    bar() {
      isBarred = true
      cut()
    },
    clearFaults() {
      isBarred = false
      line.blockedUntil = { up: 0, down: 0 }
      line.slow.until = 0
      line.bytesPerMs = Infinity
    },
    async close() {
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Line {
  clock: Clock
  /** Monotonic times, like `until`. */
  blockedUntil: Record<Direction, number>
  slow: { byMs: number; until: number }
  bytesPerMs: number
}

/** Leads the bytes of one direction of a connection. */
function lead(
  line: Line,
  from: Socket,
  to: Socket,
  direction: Direction,
  hear: (chunk: Buffer) => void,
): void {
  const { clock } = line
  const waiting: { chunk: Buffer; due: number }[] = []
  let sentMs = 0
  function flush(): void {
    for (;;) {
      const next = waiting[0]
      if (next === undefined) return
      const due = Math.max(next.due, line.blockedUntil[direction])
      if (due > clock.monotonic()) return void clock.after(due - clock.monotonic(), flush)
      waiting.shift()
      if (direction === 'down') hear(next.chunk)
      to.write(next.chunk)
    }
  }
  from.on('data', (chunk: Buffer) => {
    if (direction === 'up') hear(chunk)
    const now = clock.monotonic()
    sentMs = Math.max(now, sentMs) + chunk.length / line.bytesPerMs
    waiting.push({ chunk, due: sentMs + (now < line.slow.until ? line.slow.byMs : 0) })
    if (waiting.length === 1) flush()
  })
}
