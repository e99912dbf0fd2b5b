import type { Context } from 'hono'
import type { z } from 'zod'
import { isPlainBody } from '../../protocol/model/http-refusals.ts'
import { complaint } from './requests.ts'

/** The JSON body, whatever the content type is. Throws `Refusal`. */
export async function bodyOf<T extends z.ZodType>(c: Context, schema: T): Promise<z.output<T>> {
  if (!isPlainBody(c.req.header('content-encoding')))
    throw new Refusal(415, 'unsupported_media_type', 'the body must be sent without a Content-Encoding')
  const text = await c.req.text()
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new Refusal(400, 'invalid_json', 'the body must be JSON')
  }
  const parsed = schema.safeParse(json)
  if (!parsed.success) throw new Refusal(422, 'validation_error', complaint(parsed.error))
  return parsed.data
}

/** Thrown by a handler to answer with an error. */
export class Refusal extends Error {
  readonly status: 400 | 403 | 404 | 409 | 413 | 415 | 422
  readonly code: string
  constructor(status: Refusal['status'], code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}
