import { connect } from 'node:net'

/** Sends a text to a port of this machine, and resolves with all received data when the connection ends. */
export function sendRaw(port: number, text: string, localAddress = '127.0.0.1'): Promise<string> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect({ port, host: '127.0.0.1', localAddress }, () => socket.write(text))
    socket.setTimeout(20_000, () => socket.destroy())
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
  })
}

/** The status of a GET in HTTP/1.0 without `Host`, as minimal health checks send it. */
export async function statusInHttp10(port: number, path: string): Promise<number> {
  const answer = await sendRaw(port, `GET ${path} HTTP/1.0\r\n\r\n`)
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
}
