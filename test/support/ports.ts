import { createServer } from 'node:net'

/**
 * Linux gives the ports from 32768 to outgoing connections. A connection could take such a port after a test has chosen
 * it, before the program listens there. The tests choose lower ports.
 */
const FIRST_PORT = 10_000
const PORTS_OF_A_WORKER = 700
const WORKERS = 30

/** Two workers of one run choose from different ports; a benchmark is the worker 0. */
const first = FIRST_PORT + (Number(process.env['VITEST_POOL_ID'] ?? 0) % WORKERS) * PORTS_OF_A_WORKER
/** Files that run one after the other in a worker begin at different places. */
let next = process.pid

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** `count` free ports of this machine's loopback address; one comes again only after all others of the worker. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  for (let tried = 0; ports.length < count; tried += 1) {
    if (tried === PORTS_OF_A_WORKER) throw new Error(`fewer than ${count} ports are free from ${first}`)
    const port = first + (next++ % PORTS_OF_A_WORKER)
    if (await isFree(port)) ports.push(port)
  }
  return ports
}

/** A free port for each name, as the environment of a program names them. */
export async function portSettings<Name extends string>(
  names: readonly Name[],
): Promise<Record<Name, string>> {
  const ports = await freePorts(names.length)
  return Object.fromEntries(names.map((name, index) => [name, String(ports[index])])) as Record<Name, string>
}
