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

export type BodyLimits = Pick<CloudSettings, 'bodyIdleMs' | 'bodyTimeoutMs'>

export interface BodyOptions {
  /** On owner paths malformed JSON has its own code. */
  isOwner: boolean
  /** Whose share of the budget the body takes. */
  holder: Holder
  /** The most bytes of this body; 1 MiB by default. */
  limitBytes?: number
}

/**
 * Reads a request's body as text. Throws `payload_too_large`, `request_timeout`, `rate_limit_exceeded` if the caller's share of
 * the budget is used up, `service_unavailable` if the whole budget is, and for bytes that are not UTF-8 the error of malformed
 * JSON.
 */
export type ReadBody = (request: Request, options: BodyOptions) => Promise<string>

/**
 * Reads bodies. Each must arrive steadily and in time. A body takes the bytes that have arrived, never those that its header
 * announces, from `budget`, in which each caller has a share: callers who send slowly hold no memory of others.
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
      // A sender who has gone hears no answer.
      throw error instanceof ApiError ? error : new ApiError('request_timeout')
    } finally {
      hold!.release()
    }
  }
}

/** Whether a request has a body, judged by its headers: to look at the body of a request from a socket would begin to read it. */
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
    // As it was sent, whatever stands at its beginning: signatures are over the bytes.
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

/** Decodes the JSON of a body, or of the field of a form that `field` names. */
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

/** How deep lists and objects may stand within each other. No body of the contract needs more than 5. */
const MOST_DEPTH = 64
/** Fields and elements of a body, all together. The longest list of the contract has 10,000. */
const MOST_VALUES = 12_000

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * What is wrong with the structure of JSON; undefined if it is bounded. To parse 1 MiB of names, or of brackets, takes 100 to
 * 200 ms; to count them takes 2.
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

/** The place of the quote that ends the string at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}
