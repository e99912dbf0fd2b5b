import { createServer, type AddressInfo } from 'node:net'

/**
 * `count` free ports of this machine's loopback address, all different: asking for one port after the other can
 * return the same port twice.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer()
          server.listen(0, '127.0.0.1', () => resolve(server))
        }),
    ),
  )
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

/** A free port for each name, as the environment of a program names them. */
export async function portSettings<Name extends string>(
  names: readonly Name[],
): Promise<Record<Name, string>> {
  const ports = await freePorts(names.length)
  return Object.fromEntries(names.map((name, index) => [name, String(ports[index])])) as Record<Name, string>
}
