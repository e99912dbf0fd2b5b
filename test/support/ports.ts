import { createServer, type Server } from 'node:net'

/**
 * Linux gives the ports from 32768 to outgoing connections. A connection could take such a port after a test has chosen
 * it, before the program listens there. The tests choose lower ports.
 */
const FIRST_PORT = 10_000
const BLOCK = 300
const BLOCKS = 70

/** A server that listens on the port; undefined if something else does. */
function listening(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

/**
 * Holds a block of ports while this process lives, by listening on the first one. Other processes of the tests, also of
 * other runs, choose from other blocks. A program that is killed and started again finds its port free.
 */
async function ownBlock(start: number): Promise<number> {
  for (let tried = 0; tried < BLOCKS; tried += 1) {
    const first = FIRST_PORT + ((start + tried) % BLOCKS) * BLOCK
    const held = await listening(first)
    if (held === undefined) continue
    held.unref()
    return first
  }
  throw new Error(`tests use all ports from ${FIRST_PORT} to ${FIRST_PORT + BLOCKS * BLOCK}`)
}

async function isFree(port: number): Promise<boolean> {
  const server = await listening(port)
  if (server === undefined) return false
  await new Promise((closed) => server.close(closed))
  return true
}

type ChoosePorts = (count: number) => Promise<number[]>

/** Chooses from the first block from `start` that no other process holds. */
export function portChooser(start: number): ChoosePorts {
  let block: Promise<number> | undefined
  let next = 1
  return async (count) => {
    const first = await (block ??= ownBlock(start))
    const ports: number[] = []
    for (let tried = 1; ports.length < count; tried += 1) {
      if (tried === BLOCK) throw new Error(`fewer than ${count} ports are free from ${first}`)
      const port = first + next
      next = (next % (BLOCK - 1)) + 1
      if (await isFree(port)) ports.push(port)
    }
    return ports
  }
}

/** `count` free ports of this machine's loopback address; one comes again only after all others of the process. */
export const freePorts = portChooser(process.pid)

/** A free port for each name, as the environment of a program names them. */
export async function portSettings<Name extends string>(
  names: readonly Name[],
): Promise<Record<Name, string>> {
  const ports = await freePorts(names.length)
  return Object.fromEntries(names.map((name, index) => [name, String(ports[index])])) as Record<Name, string>
}
