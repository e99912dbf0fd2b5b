import { errorCodes, type ErrorCode } from './error-codes.ts'
import { randomHex } from './ids.ts'
import type { Random, Runtime } from './runtime.ts'

/** The used parts of a socket and of an answer of `node:http`. */
export interface SocketLike {
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
  on(event: 'close', listener: () => void): unknown
  destroy(): unknown
}
export interface ResponseLike {
  /** False: the connection ends after this answer. */
  shouldKeepAlive: boolean
  readonly headersSent: boolean
  on(event: 'finish', listener: () => void): unknown
  writeHead(status: number, headers: Record<string, string>): unknown
  end(body: string): unknown
}
interface RawSocket {
  writable: boolean
  on(event: 'error', listener: () => void): unknown
  end(text: string): unknown
  destroy(): unknown
}

/** The head of a request, as Node read it. */
export interface RequestHead {
  url?: string | undefined
  httpVersion: string
  headers: Readonly<Record<string, string | string[] | undefined>>
  rawHeaders: readonly string[]
}

/**
 * How long the rest of a refused request may arrive and is discarded. Many clients read the answer only after they have
 * sent everything.
 */
const LINGER_MS = 1000

const PLAIN_HOST = /^[a-z0-9._-]+(:\d{1,5})?$/i
const TARGET = /^\/[^\\#]*$/

/** The error of a request's `Host` or target (RFC 9112 §3.2); undefined if there is none. */
export function headProblem({ url = '', httpVersion, headers, rawHeaders }: RequestHead): string | undefined {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === 4 && rawHeaders[at]!.toLowerCase() === 'host') hosts += 1
  if (hosts > 1) return 'The request has more than one Host header.'
  const host = headers['host'] as string | undefined
  if (hosts === 0 && httpVersion !== '1.0') return 'The Host header is missing.'
  if (host !== undefined && host !== '' && !PLAIN_HOST.test(host) && !isHost(host))
    return 'The Host header is not the name of a host.'
  if (host === '') return httpVersion === '1.0' ? undefined : 'The Host header is empty.'
  if (TARGET.test(url.split('?', 1)[0]!)) return undefined
  return /^https?:\/\/[^\\]*$/i.test(url) && URL.canParse(url)
    ? undefined
    : 'The target of the request is not a path.'
}

function isHost(host: string): boolean {
  if (!URL.canParse(`http://${host}`)) return false
  const { hostname, pathname, search, hash, username } = new URL(`http://${host}`)
  const isBare = pathname === '/' && search === '' && hash === '' && username === '' && !host.includes('@')
  return isBare && hostname === host.replace(/:\d*$/, '').toLowerCase()
}

/** Whether the bytes of a body are the body itself: without `Content-Encoding`, or with `identity`. */
export const isPlainBody = (contentEncoding: string | undefined): boolean =>
  (contentEncoding ?? '').split(',').every((each) => ['', 'identity'].includes(each.trim().toLowerCase()))

interface Refused {
  code: ErrorCode
  message?: string
}

/** The error of contract §2, for answers outside of any route. */
function errorOf({ code, message = errorCodes[code].message }: Refused, random: Random) {
  const requestId = `req_${randomHex(random, 12)}`
  const body = JSON.stringify({ error: { code, message }, detail: message, request_id: requestId })
  const headers: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(new TextEncoder().encode(body).length),
    'X-Request-Id': requestId,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  }
  return { status: errorCodes[code].status, headers, body }
}

/** Refuses a request that Node could read. */
export function refuse(response: ResponseLike, refused: Refused, random: Random): void {
  const { status, headers, body } = errorOf(refused, random)
  response.writeHead(status, headers)
  response.end(body)
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  413: 'Payload Too Large',
  431: 'Request Header Fields Too Large',
}

const codes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

const answered = new WeakSet<object>()

/**
 * Answers input that Node could not read as a request, or did not receive in time, and ends the connection.
 * `isAnswering`: another answer is being sent.
 */
export function answerClientError(
  stream: unknown,
  { error, isAnswering }: { error: Error; isAnswering: boolean },
  { clock, random }: Runtime,
): void {
  const socket = stream as RawSocket
  const { code = '' } = error as { code?: string }
  // Node reports the rest of the same request as further errors.
  if (answered.has(socket)) return
  answered.add(socket)
  socket.on('error', () => {})
  if (code === 'ECONNRESET' || !socket.writable || isAnswering) return void socket.destroy()
  const { status, headers, body } = errorOf({ code: codes[code] ?? 'bad_request' }, random)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${reasons[status]}\r\n${lines.join('')}\r\n${body}`)
  clock.after(LINGER_MS, () => void socket.destroy())
}
