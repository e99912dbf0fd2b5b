import { connect, type Socket } from 'node:net'

/** Instructions to `http-load.ts`. */
export interface Load {
  port: number
  /** Complete requests, as bytes on the line. */
  requests: readonly string[]
  /** Number of simultaneous requests. */
  connections: number
  /**
   * The client never sleeps. Waking a sleeping client costs a server in a virtual machine as much as all its
   * other work, and only the quicker of two servers is spared it.
   */
  isAwake?: boolean
}

/** Result: one time per request in milliseconds, and the bytes of all answers with headers. */
export interface Loaded {
  elapsedMs: number
  times: number[]
  bytes: number
}

/**
 * Sends requests over kept-alive connections, and reads each answer to its end. It does so little work that
 * the measured time is the server's.
 */
async function run({ port, requests, connections, isAwake = false }: Load): Promise<Loaded> {
  const times: number[] = []
  let bytes = 0
  let next = 0
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  const rest = isAwake ? stayAwake() : () => {}
  const begun = performance.now()
  await Promise.all(
    sockets.map(async (socket) => {
      for (let mine = next++; mine < requests.length; mine = next++) {
        const from = performance.now()
        const read = await ask(socket, requests[mine]!)
        times.push(performance.now() - from)
        bytes += read
      }
    }),
  )
  const elapsedMs = performance.now() - begun
  rest()
  for (const socket of sockets) socket.destroy()
  return { elapsedMs, times, bytes }
}

/** Runs a busy loop until the returned function is called. */
function stayAwake(): () => void {
  let round = setImmediate(function again() {
    round = setImmediate(again)
  })
  return () => clearImmediate(round)
}

const open = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })

/** Resolves with the bytes of the answer. Rejects with the answer if it is no success. */
function ask(socket: Socket, request: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = ''
    let end = -1
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1')
      if (end < 0) end = endOf(text)
      if (end < 0 || (end === Infinity ? !text.endsWith('0\r\n\r\n') : text.length < end)) return
      socket.off('data', onData)
      if (/^HTTP\/1\.1 (200|304)/.test(text)) resolve(text.length)
      else reject(new Error(`${request.split('\r\n', 1)[0]} was answered ${text.slice(0, 2000)}`))
    }
    socket.on('data', onData)
    socket.write(request)
  })
}

/** End of the answer that starts with this text; -1 as long as it is unknown. */
function endOf(text: string): number {
  const head = text.indexOf('\r\n\r\n')
  if (head < 0) return -1
  if (text.startsWith('HTTP/1.1 304')) return head + 4
  const length = /^content-length: *(\d+)/im.exec(text.slice(0, head))
  return length ? head + 4 + Number(length[1]) : Infinity
}

process.once('disconnect', () => process.exit(0))
process.on('message', (load: Load) => {
  run(load).then(
    (loaded) => process.send!(loaded),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
