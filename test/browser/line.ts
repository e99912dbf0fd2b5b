import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** An address that leads to one hub, later to another one, or to none. */
export interface Line {
  url: string
  /** The hub has no power: nothing arrives, and no connection ends. */
  freeze(): void
  leadTo(url: string): void
}

export async function lineTo(url: string): Promise<Line> {
  let target = new URL(url)
  let isFrozen = false
  const sockets = new Set<Socket>()
  const server = createServer((from) => {
    const to = connect(Number(target.port), '127.0.0.1')
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one)
      one.on('data', (data) => void (isFrozen || other.write(data)))
      one.on('close', () => void (isFrozen || other.destroy()))
      one.on('error', () => other.destroy())
    }
  })
  function drop(): void {
    for (const one of sockets) one.destroy()
    sockets.clear()
  }
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    drop()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    freeze: () => void (isFrozen = true),
    leadTo(other) {
      target = new URL(other)
      drop()
    },
  }
}
