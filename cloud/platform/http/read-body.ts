import { Readable } from 'node:stream'
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import type { Budget, Holder } from '../../../protocol/model/budget.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import { Eviction, fullError } from '../limits/full.ts'
import type { CloudSettings } from '../settings/limits.ts'
import { valueError } from './validation-items.ts'

/** The largest JSON body. */
const LIMIT_BYTES = 1024 * 1024

type BodyLimits = Pick<CloudSettings, 'bodyIdleMs' | 'bodyTimeoutMs'>

interface BodyOptions {
  /** On owner paths malformed JSON has its own code. */
  isOwner: boolean
  /** The holder of the budget's share that the body uses. */
  holder: Holder
  /** Maximum bytes of this body; default 1 MiB. */
  limitBytes?: number
}

/** A request's body: its announced length (0 if absent), and its bytes; null if it has none. */
export interface Body {
  length: number
  bytes: Readable | null
}

/**
 * Reads a request's body as text. Throws:
 * - `payload_too_large` and `request_timeout`
 * - `rate_limit_exceeded` if the caller's share of the budget is used up
 * - `service_unavailable` if the whole budget is used up
 * - the error of malformed JSON if the bytes are not UTF-8
 */
export type ReadBody = (body: Body, options: BodyOptions) => Promise<string>

/**
 * Reads bodies. Each must arrive steadily and in time. A body takes its received bytes, not its announced length, from
 * `budget`. Each caller has a share, so slow senders use no memory of others.
 */
export function bodyReader(clock: Clock, limits: BodyLimits, budget: Budget): ReadBody {
  return async ({ length, bytes }, { isOwner, holder, limitBytes = LIMIT_BYTES }) => {
    if (length > limitBytes) throw new ApiError('payload_too_large')
    if (!bytes) return ''
    const eviction = new Eviction()
    const { hold } = budget.take(holder, { amount: 0, evict: () => eviction.evict() })
    let received = 0
    const take = (more: number): void => {
      received += more
      if (received > limitBytes) throw new ApiError('payload_too_large')
      const full = hold!.grow(more)
      if (full !== null) throw fullError(full, 'bytes of requests that are not complete')
    }
    const { whole, stop } = gather(bytes, clock, limits, take)
    try {
      return textOf(await eviction.orElse(whole), isOwner)
    } finally {
      stop()
      hold!.release()
    }
  }
}

const SPARE_BYTES = 64 * 1024

/** Joins chunks of any size. They are copied, because a kept chunk of one byte takes some hundred bytes of memory. */
class Chunks {
  #bytes: Buffer | undefined
  #length = 0

  add(chunk: Buffer): void {
    const length = this.#length + chunk.byteLength
    if (this.#bytes && length > this.#bytes.byteLength) {
      const larger = Buffer.allocUnsafe(length + SPARE_BYTES)
      this.#bytes.copy(larger)
      this.#bytes = larger
    }
    // Most bodies have one chunk, which is not copied.
    if (this.#bytes) chunk.copy(this.#bytes, this.#length)
    else this.#bytes = chunk
    this.#length = length
  }

  joined(): Buffer {
    return this.#bytes?.subarray(0, this.#length) ?? Buffer.alloc(0)
  }
}

/** Gathers the bytes of a stream. `take` is called with the size of each chunk; its error ends the reading. */
function gather(bytes: Readable, clock: Clock, limits: BodyLimits, take: (more: number) => void) {
  const deadline = clock.monotonic() + limits.bodyTimeoutMs
  let stop!: () => void
  const whole = new Promise<Buffer>((resolve, reject) => {
    const chunks = new Chunks()
    // A disconnected sender gets no answer.
    const end = (): void => reject(new ApiError('request_timeout'))
    const wait = () => clock.after(Math.min(limits.bodyIdleMs, deadline - clock.monotonic()), end)
    let cancel = wait()
    function add(chunk: Buffer): void {
      cancel()
      cancel = wait()
      chunks.add(chunk)
      try {
        take(chunk.byteLength)
      } catch (error) {
        reject(error)
      }
    }
    bytes.on('data', add)
    bytes.once('end', () => resolve(chunks.joined()))
    bytes.once('error', end)
    bytes.once('close', end)
    if (bytes.destroyed) end()
    stop = () => {
      cancel()
      bytes.off('data', add)
      bytes.off('close', end)
      bytes.pause()
    }
  })
  return { whole, stop }
}

/**
 * The body of a request. Its bytes come from the socket's stream if there is one: accessing `Request.body` makes a `Request`
 * and a web stream, which takes 7 % of the processor time of a payment.
 */
export function bodyOf(c: Context): Body {
  const length = Number(c.req.header('Content-Length') ?? 0)
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>
  if (incoming) return { length, bytes: hasBody(c) ? incoming : null }
  const { body } = c.req.raw
  return { length, bytes: body && Readable.fromWeb(body) }
}

/**
 * Whether a request has a body, according to its headers. Accessing the body of a socket's request would start reading
 * it.
 */
export function hasBody(c: Context): boolean {
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>
  if (incoming === undefined) return c.req.raw.body !== null
  return Number(c.req.header('Content-Length') ?? 0) > 0 || c.req.header('Transfer-Encoding') !== undefined
}

function textOf(bytes: Buffer, isOwner: boolean): string {
  try {
    // Keeps a byte order mark, because signatures cover the bytes.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformed(isOwner, 'the body is not UTF-8', [])
  }
}

/** Parses a JSON body. Malformed JSON has its own code on owner paths; elsewhere it is FastAPI's 422. */
export function parseJson(
  text: string,
  contentType: string | undefined,
  isOwner: boolean,
): { present: boolean; value: unknown } {
  if (text.trim() === '') return { present: false, value: undefined }
  if (!/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(contentType ?? ''))
    throw new ApiError('unsupported_media_type')
  return { present: true, value: decodeJson(text, isOwner) }
}

/** Decodes the JSON of a body, or of the form field `field`. */
export function decodeJson(text: string, isOwner: boolean, field: readonly string[] = []): unknown {
  const problem = structureProblem(text)
  if (problem !== undefined) throw ApiError.invalid({ loc: ['body', ...field], ...valueError(problem) })
  try {
    // Some Windows programs begin JSON with a byte order mark.
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown
  } catch (error) {
    throw malformed(isOwner, error instanceof Error ? error.message : 'malformed', field)
  }
}

function malformed(isOwner: boolean, error: string, field: readonly string[]): ApiError {
  const where = field.join('.')
  if (isOwner) return new ApiError('invalid_json', where === '' ? undefined : `${where} is not valid JSON.`)
  return ApiError.invalid({
    loc: ['body', ...field],
    msg: 'JSON decode error',
    type: 'json_invalid',
    ctx: { error },
  })
}

/** Maximum nesting of lists and objects. The contract's bodies need at most 5. */
const MOST_DEPTH = 64
/** Maximum number of fields and elements of a body. The longest list of the contract has 10,000. */
const MOST_VALUES = 12_000

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * The problem in the structure of JSON; undefined if it is within limits. Parsing 1 MiB of names or brackets takes 100
 * to 200 ms; counting them takes 2 ms.
 */
export function structureProblem(text: string): string | undefined {
  let depth = 0
  let values = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === COMMA) values += 1
    else if (code === LIST || code === OBJECT) {
      depth += 1
      values += 1
    } else if (code === LIST_END || code === OBJECT_END) depth -= 1
    if (depth > MOST_DEPTH) return `must be at most ${MOST_DEPTH} lists and objects deep`
    if (values > MOST_VALUES) return `must have at most ${MOST_VALUES} fields and elements`
  }
  return undefined
}

/** The index of the closing quote of the string at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}
