import { serve } from '@hono/node-server'

export interface Listener {
  /** Where it listens: `http://127.0.0.1:8081`. */
  url: string
  close(): void
}

/**
 * Listens, and resolves when it does. Rejects with a sentence that names the setting where it cannot.
 * `fetch` is asked for each request, so that it may be there later than the port.
 */
export function listen(
  { host, port }: { host: string; port: number },
  fetch: (request: Request) => Response | Promise<Response>,
): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch, hostname: host, port }, (address) => {
      server.off('error', fail)
      resolve({ url: `http://${host}:${address.port}`, close: () => void server.close() })
    })
    const fail = (error: NodeJS.ErrnoException): void => reject(new Error(reasonOf(error, host, port)))
    server.once('error', fail)
  })
}

function reasonOf(error: NodeJS.ErrnoException, host: string, port: number): string {
  if (error.code === 'EADDRINUSE') return `port ${port} of ${host} is in use: set PORT to another one`
  if (error.code === 'EACCES') return `port ${port} may not be used by this user: set PORT to another one`
  return `the local API cannot listen at ${host}:${port}, as HOST and PORT say: ${error.message}`
}
