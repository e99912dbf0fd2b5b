import type { Context } from 'hono'
import { z } from 'zod'
import { isPlainBody } from '../../protocol/model/http-refusals.ts'
import type { LocalOutcome } from '../core/hub-core.ts'
import { LocalError } from './local-error.ts'

/** The body of an act that takes none. Unknown keys are refused in all bodies: whoever types `unit` for `units` must hear of it. */
export const Nothing = z.strictObject({})

/** The answer to a person's act: what came of it. */
export function done(c: Context, outcome: LocalOutcome): Response {
  if (outcome.ok) return c.json({ ok: true })
  const code = outcome.reason === 'invalid' ? 'invalid_request' : outcome.reason
  throw new LocalError(code, outcome.why === undefined ? undefined : { why: outcome.why })
}

/** The request's body as its schema has it. Throws `LocalError`. */
export async function bodyOf<T extends z.ZodType>(c: Context, schema: T): Promise<z.output<T>> {
  if (!isPlainBody(c.req.header('content-encoding'))) throw new LocalError('unsupported_media_type')
  const text = await c.req.text()
  let json: unknown
  try {
    json = text === '' ? {} : JSON.parse(text)
  } catch {
    throw new LocalError('invalid_json')
  }
  return parse(schema, json, 'body')
}

/** `where`: the name of what is parsed, for whoever sent it. Throws `LocalError`. */
export function parse<T extends z.ZodType>(schema: T, value: unknown, where: string): z.output<T> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path, message }) => ({ loc: [where, ...path], message }))
  throw new LocalError('invalid_request', { problems })
}
