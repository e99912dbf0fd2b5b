import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import type { CloudSettings } from '../settings/rule-settings.ts'

/** The largest JSON body. */
const LIMIT_BYTES = 1024 * 1024

export type BodyLimits = Pick<CloudSettings, 'bodyIdleMs' | 'bodyTimeoutMs' | 'heldBodyBytes'>

/**
 * Reads a request's body as text. Throws `payload_too_large`, `request_timeout`, `service_unavailable`, and for bytes that are
 * not UTF-8 what malformed JSON is answered with.
 */
export type ReadBody = (request: Request, isOwner: boolean) => Promise<string>

/**
 * Reads bodies, and never more of one than the limit, whatever its header claims. Each must come steadily and in time, and
 * there is a bound on what all together hold that have not come in whole: strangers who send slowly bind no memory.
 */
export function bodyReader(clock: Clock, limits: BodyLimits): ReadBody {
  /** Bytes of bodies that are being read. */
  let heldBytes = 0

  return async (request, isOwner) => {
    const announced = Number(request.headers.get('content-length') ?? 0)
    if (announced > LIMIT_BYTES) throw new ApiError('payload_too_large')
    if (heldBytes + announced > limits.heldBodyBytes) throw new ApiError('service_unavailable')
    if (!request.body) return ''
    /** What this body counts for: what it says that it will be, or what it is where that is more. */
    let ownBytes = announced
    heldBytes += ownBytes
    const reader = request.body.getReader()
    const deadline = clock.monotonic() + limits.bodyTimeoutMs
    const chunks: Uint8Array[] = []
    let length = 0
    try {
      for (;;) {
        const waitMs = Math.min(limits.bodyIdleMs, deadline - clock.monotonic())
        const { done, value } = await inTime(clock, waitMs, reader.read())
        if (done) return textOf(Buffer.concat(chunks), isOwner)
        length += value.byteLength
        heldBytes += Math.max(0, length - ownBytes)
        ownBytes = Math.max(ownBytes, length)
        if (length > LIMIT_BYTES) throw new ApiError('payload_too_large')
        if (heldBytes > limits.heldBodyBytes) throw new ApiError('service_unavailable')
        chunks.push(value)
      }
    } catch (error) {
      reader.cancel().catch(() => {})
      // A sender who has gone hears no answer.
      throw error instanceof ApiError ? error : new ApiError('request_timeout')
    } finally {
      heldBytes -= ownBytes
    }
  }
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
  try {
    return JSON.parse(text) as unknown
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
