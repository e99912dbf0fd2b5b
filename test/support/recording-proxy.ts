import { createServer, request as send, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One call through the proxy. */
export interface RecordedCall {
  method: string
  path: string
  status: number
}

export interface RecordingProxy {
  url: string
  /** The calls since the last `take`. */
  take(): RecordedCall[]
  close(): Promise<void>
}

/**
 * Forwards every call to a service of this machine and records its status, so that tests can judge samples by
 * it.
 */
export async function recordingProxy(target: string): Promise<RecordingProxy> {
  let calls: RecordedCall[] = []
  const server: Server = createServer((incoming, outgoing) => {
    const { method = 'GET', url: path = '/', headers } = incoming
    const forwarded = send(new URL(path, target), { method, headers }, (answer) => {
      calls.push({ method, path, status: answer.statusCode ?? 0 })
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    take() {
      const taken = calls
      calls = []
      return taken
    },
    close() {
      server.closeAllConnections()
      return new Promise((done) => server.close(() => done()))
    },
  }
}
