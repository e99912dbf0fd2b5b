import { ApiError } from '../api-error.ts'

/** The largest JSON body. */
const LIMIT_BYTES = 1024 * 1024

/** Reads a body as text, and never more of it than the limit, whatever its header claims. Throws `payload_too_large`. */
export async function readBody(request: Request): Promise<string> {
  if (Number(request.headers.get('content-length') ?? 0) > LIMIT_BYTES)
    throw new ApiError('payload_too_large')
  const chunks: Uint8Array[] = []
  let length = 0
  // Leaving the loop cancels the stream.
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength
    if (length > LIMIT_BYTES) throw new ApiError('payload_too_large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
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
    const where = field.join('.')
    if (isOwner) throw new ApiError('invalid_json', where === '' ? undefined : `${where} is not valid JSON.`)
    throw ApiError.invalid({
      loc: ['body', ...field],
      msg: 'JSON decode error',
      type: 'json_invalid',
      ctx: { error: error instanceof Error ? error.message : 'malformed' },
    })
  }
}
