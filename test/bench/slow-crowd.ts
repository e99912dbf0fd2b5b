import { connect, type Socket } from 'node:net'

/** Instructions to `slow-crowd.ts`. */
export interface Crowd {
  port: number
  /** Number of connections of each kind. */
  each: number
  /** Keys of the owner's interface: one for each connection that needs it. */
  keys: readonly string[]
}

/** Number of open connections, and of those that the server has closed. */
export interface CrowdReport {
  open: number
  ended: number
}

interface Slowness {
  /** Bytes sent at once, and bytes sent later, `bytes` in each step. */
  first: string
  rest: Buffer
  bytes: number
  /** Bytes of the answer read in each step; undefined: all. */
  reads?: number
}

const STEP_MS = 200
const REOPEN_MS = 500
const PIPELINED = 20

const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
const fields = { hubId: 1, name: 'Lift', submittedBy: 'bench', serviceType: 'Corrective' }
const times = { serviceStartTime: '2026-03-01T09:00:00Z', timestamp: '2026-03-01T10:30:00Z' }
const form = [
  '--slow\r\nContent-Disposition: form-data; name="formData"\r\n\r\n',
  `${JSON.stringify({ ...fields, ...times })}\r\n`,
  '--slow\r\nContent-Disposition: form-data; name="media"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n',
].join('')

const head = (request: string, ...lines: string[]): string =>
  [`${request} HTTP/1.1`, 'Host: bench', ...lines].join('\r\n')

/** Connections that send the start of a request, a body or a file byte by byte, or hardly read an answer. */
const kinds: readonly ((key: string) => Slowness)[] = [
  () => ({ first: '', rest: Buffer.from(head('GET /', `X-Slow: ${'x'.repeat(4000)}`)), bytes: 1 }),
  () => ({
    first: `${head('POST /webhooks/payments', 'Content-Type: application/json', 'Payment-Signature: t=1,v1=00', 'Content-Length: 20000')}\r\n\r\n`,
    rest: Buffer.alloc(20_000, ' '),
    bytes: 1,
  }),
  (key) => ({
    first: `${head(
      'POST /api/v1/owners/maintenance/reports',
      `X-API-Key: ${key}`,
      'Content-Type: multipart/form-data; boundary=slow',
      'Content-Length: 10000000',
    )}\r\n\r\n${form}`,
    rest: Buffer.concat([png, Buffer.alloc(9_000_000)]),
    bytes: 1000,
  }),
  (key) => ({
    first:
      `${head('GET /api/v1/owners/hubs/all_orders_paginated/?hub_id=1&limit=100', `X-API-Key: ${key}`)}\r\n\r\n`.repeat(
        PIPELINED,
      ),
    rest: Buffer.alloc(0),
    bytes: 0,
    reads: 100,
  }),
]

function run({ port, each, keys }: Crowd): () => CrowdReport {
  const open = new Set<Socket>()
  let ended = 0

  function come(slowness: Slowness): void {
    const socket = connect({ port, host: '127.0.0.1' })
    let sent = 0
    socket.on('connect', () => {
      open.add(socket)
      socket.write(slowness.first)
    })
    if (slowness.reads === undefined) socket.resume()
    else socket.pause()
    const step = setInterval(() => {
      if (slowness.reads !== undefined) void socket.read(slowness.reads)
      if (sent >= slowness.rest.length || socket.readyState !== 'open') return
      socket.write(slowness.rest.subarray(sent, (sent += slowness.bytes)))
    }, STEP_MS)
    socket.on('error', () => {})
    socket.on('close', () => {
      clearInterval(step)
      if (open.delete(socket)) ended += 1
      setTimeout(() => come(slowness), REOPEN_MS)
    })
  }

  for (const kind of kinds) for (let n = 0; n < each; n += 1) come(kind(keys[n % keys.length]!))
  return () => ({ open: open.size, ended })
}

process.once('disconnect', () => process.exit(0))
let report: (() => CrowdReport) | undefined
process.on('message', (message: Crowd | 'report') => {
  if (message === 'report') process.send!(report!())
  else report = run(message)
})
