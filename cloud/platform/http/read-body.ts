import { ApiError } from '../api-error.ts'

/** The largest JSON body (contract §4). */
export const BODY_LIMIT_BYTES = 1024 * 1024

/** Reads a body as text, and no more of it than `limitBytes`, whatever its length was said to be. */
export async function readBody(request: Request, limitBytes = BODY_LIMIT_BYTES): Promise<string> {
  if (Number(request.headers.get('content-length') ?? 0) > limitBytes) throw new ApiError('payload_too_large')
  if (!request.body) return ''
  const reader = (request.body as ReadableStream<Uint8Array>).getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks).toString('utf8')
    length += value.byteLength
    if (length > limitBytes) {
      await reader.cancel()
      throw new ApiError('payload_too_large')
    }
    chunks.push(value)
  }
}

/** Parses a JSON body. Malformed JSON has its own code on owner paths; elsewhere it is FastAPI's 422 (contract §2). */
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

/** Of the body, or of one field of a form. */
export function decodeJson(text: string, isOwner: boolean, field: readonly string[] = []): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    if (isOwner)
      throw new ApiError(
        'invalid_json',
        field.length > 0 ? `${field.join('.')} is not valid JSON.` : undefined,
      )
    throw new ApiError('validation_error', undefined, undefined, [
      {
        loc: ['body', ...field],
        msg: 'JSON decode error',
        type: 'json_invalid',
        ctx: { error: error instanceof Error ? error.message : 'malformed' },
      },
    ])
  }
}
