import { rmSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { formatGpioAddress, type GpioAddress } from '../../protocol/gpio/socket.ts'

/** Listens; resolves to the address, with the assigned port if it was 0. Rejects if the address cannot be used. */
export async function listenAt(server: Server, address: GpioAddress): Promise<GpioAddress> {
  // A socket file outlives a killed server. It is in use only if a server answers there.
  if ('path' in address) {
    if (await answers(address)) throw new Error(`${formatGpioAddress(address)} is in use`)
    rmSync(address.path, { force: true })
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(address, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  const bound = server.address()
  return typeof bound === 'object' && bound ? { host: bound.address, port: bound.port } : address
}

function answers(address: { path: string }): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(address)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', () => resolve(false))
  })
}
