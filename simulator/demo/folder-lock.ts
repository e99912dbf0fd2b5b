import { rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'

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
