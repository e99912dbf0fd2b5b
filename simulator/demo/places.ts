import { renameSync, writeFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { connect, createServer, type Server } from 'node:net'

/** Where the demo keeps things, below its data folder. */
export function demoPlaces(dataDir: string) {
  const at = (...parts: string[]) => join(dataDir, ...parts)
  return {
    dataDir,
    demoFile: at('demo.json'),
    /** A socket: whoever listens at it has the folder. */
    lock: at('lock.sock'),
    /** The seed program's output. It exists after a complete first start. */
    seedFile: at('seed.json'),
    logs: at('logs'),
    cloud: at('cloud'),
    database: at('cloud', 'larder.sqlite'),
    /** The keys of the demo's releases, and the root that its hub trusts: a file of the keys, and its copy beside the journal. */
    releaseKeys: at('cloud', 'release-keys'),
    releaseRoot: at('cloud', 'release-keys', 'root.json'),
    updateRoot: at('hub-1', 'update-root.json'),
    hub: at('hub-1'),
    journal: at('hub-1', 'journal.sqlite'),
    hardwareFile: at('hub-1', 'hardware.json'),
    /** The hub's configuration. */
    hubConfig: at('hub-1', 'hub.json'),
    shelvesFile: at('hub-1', 'shelves.json'),
    /** Files of the hub's management service: permitted keys, its own key, and the cloud's record of it. */
    authorizedKeys: at('hub-1', 'authorized_keys'),
    hostKey: at('hub-1', 'host-key'),
    managementFile: at('hub-1', 'management.json'),
    /** The cloud's key. */
    managementKey: at('cloud', 'management-key'),
    /** The launcher's own interface, for the management service. */
    supervisorSocket: at('supervisor.sock'),
    /** The same, for scenarios; and where they keep a copy of the cloud's database. */
    benchSocket: at('bench.sock'),
    copies: at('simulator', 'cloud-copy'),
    simulator: at('simulator'),
    gpioSocket: at('simulator', 'gpio.sock'),
    log: (name: string) => at('logs', `${name}.log`),
  }
}
export type DemoPlaces = ReturnType<typeof demoPlaces>

/** The output of the seed program. Keys are never shown again. */
export const SeedResult = z.object({
  owner: z.object({ api_key: z.string() }),
  other_owner: z.object({ api_key: z.string(), hub_id: z.int() }),
  diag: z.object({ api_key: z.string() }),
  hubs: z.array(z.object({ hub_id: z.int(), name: z.string() })).min(1),
  /** The password of hub 1 at the broker. */
  mqtt_password: z.string(),
  /** The passwords of all hubs, by their ids. Older seed programs print only the password of hub 1. */
  mqtt_passwords: z.record(z.string(), z.string()).optional(),
  /** The initial stock of hub 1's shelves. */
  shelves: z.array(
    z.object({
      cabinet: z.int(),
      shelf: z.int(),
      row: z.int(),
      product_id: z.int(),
      units: z.int(),
    }),
  ),
})
export type SeedResult = z.infer<typeof SeedResult>

/** Replaces the file at one instant: a reader sees the old one or the new one. Only its owner may read it. */
export function writeJson(path: string, value: unknown): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

const ATTEMPTS = 5

/**
 * Locks a folder for one process. The lock is a Unix socket in the folder at which the process listens. A socket cannot
 * outlive its process; a file with a process id can. Resolves with the release, or with null if another process has the
 * folder.
 */
export async function lockFolder(socket: string): Promise<(() => void) | null> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const server = await listenAt(socket)
    if (server) return () => void server.close()
    if (await isHeld(socket)) return null
    // A process that was killed left it.
    rmSync(socket, { force: true })
  }
  return null
}

/** Null where the path is taken. */
function listenAt(socket: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((connection) => connection.end())
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(null) : reject(error),
    )
    server.listen(socket, () => {
      // It keeps no process running.
      server.unref()
      resolve(server)
    })
  })
}

/** Whether a process has the folder. */
export function isHeld(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket)
    connection.once('connect', () => resolve(true))
    connection.once('error', () => resolve(false))
    connection.once('close', () => connection.destroy())
  })
}
