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

/**
 * Reads a request's body as text. Throws:
 * - `payload_too_large` and `request_timeout`
 * - `rate_limit_exceeded` if the caller's share of the budget is used up
 * - `service_unavailable` if the whole budget is used up
 * - the error of malformed JSON if the bytes are not UTF-8
 */
export type ReadBody = (request: Request, options: BodyOptions) => Promise<string>

/**
 * Reads bodies. Each must arrive steadily and in time. A body takes its received bytes, not its announced length, from
 * `budget`. Each caller has a share, so slow senders use no memory of others.
 */
export function bodyReader(clock: Clock, limits: BodyLimits, budget: Budget): ReadBody {
  return async (request, { isOwner, holder, limitBytes = LIMIT_BYTES }) => {
    if (Number(request.headers.get('content-length') ?? 0) > limitBytes)
      throw new ApiError('payload_too_large')
    if (!request.body) return ''
    const reader = request.body.getReader()
    const deadline = clock.monotonic() + limits.bodyTimeoutMs
    const chunks: Uint8Array[] = []
    let length = 0
    const eviction = new Eviction()
    const { hold } = budget.take(holder, { amount: 0, evict: () => eviction.evict() })
    try {
      for (;;) {
        const waitMs = Math.min(limits.bodyIdleMs, deadline - clock.monotonic())
        const { done, value } = await eviction.orElse(inTime(clock, waitMs, reader.read()))
        if (done) return textOf(Buffer.concat(chunks), isOwner)
        length += value.byteLength
        if (length > limitBytes) throw new ApiError('payload_too_large')
        const full = hold!.grow(value.byteLength)
        if (full !== null) throw fullError(full, 'bytes of requests that are not complete')
        chunks.push(value)
      }
    } catch (error) {
      reader.cancel().catch(() => {})
      // A disconnected sender gets no answer.
      throw error instanceof ApiError ? error : new ApiError('request_timeout')
    } finally {
      hold!.release()
    }
  }
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

function inTime<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => reject(new ApiError('request_timeout')))
    work.then(resolve, reject).finally(cancel)
  })
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
