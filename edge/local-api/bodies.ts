import type { Context } from 'hono'
import { z } from 'zod'
import { isPlainBody } from '../../protocol/model/http-refusals.ts'
import type { LocalOutcome } from '../core/hub-core.ts'
import { LocalError } from './local-error.ts'

/**
 * The body of an action without parameters. All bodies refuse unknown keys: a caller who writes `unit`
 * instead of `units` must get an error.
 */
export const Nothing = z.strictObject({})

/** Answers with the outcome of a person's action. */
export function done(c: Context, outcome: LocalOutcome): Response {
  if (outcome.ok) return c.json({ ok: true })
  const code = outcome.reason === 'invalid' ? 'invalid_request' : outcome.reason
  throw new LocalError(code, outcome.why === undefined ? undefined : { why: outcome.why })
}

/** Parses the request's body with its schema. Throws `LocalError`. */
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

/** `where`: the name of the parsed value, for the error message. Throws `LocalError`. */
export function parse<T extends z.ZodType>(schema: T, value: unknown, where: string): z.output<T> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path, message }) => ({ loc: [where, ...path], message }))
  throw new LocalError('invalid_request', { problems })
}
