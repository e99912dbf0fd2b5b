import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A proxy in front of a server that can become silent: it accepts connections and returns nothing. */
interface Relay {
  url: string
  isSilent: boolean
  close(): void
}

export async function relayTo(target: string): Promise<Relay> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const relay: Relay = {
    url: '',
    isSilent: false,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes) => relay.isSilent || to.write(bytes))
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = new URL(target)
  address.port = String((server.address() as AddressInfo).port)
  relay.url = address.href.replace(hostname, '127.0.0.1')
  return relay
}
