import { createServer, type RequestListener } from 'node:http'

export interface Listener {
  /** Where it listens: `http://127.0.0.1:8081`. */
  url: string
  close(): void
}

/** Listens, and resolves when it does. Rejects with a sentence that names the setting where it cannot. */
export function listen(
  { host, port }: { host: string; port: number },
  answer: RequestListener,
): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const server = createServer(answer)
    const fail = (error: NodeJS.ErrnoException): void => reject(new Error(reasonOf(error, host, port)))
    server.once('error', fail)
    server.listen({ port, host }, () => {
      server.off('error', fail)
      const address = server.address()
      const actual = typeof address === 'object' && address ? address.port : port
      resolve({ url: `http://${host}:${actual}`, close: () => void server.close() })
    })
  })
}

function reasonOf(error: NodeJS.ErrnoException, host: string, port: number): string {
  if (error.code === 'EADDRINUSE') return `port ${port} of ${host} is in use: set PORT to another one`
  if (error.code === 'EACCES') return `port ${port} may not be used by this user: set PORT to another one`
  return `the local API cannot listen at ${host}:${port}, as HOST and PORT say: ${error.message}`
}
