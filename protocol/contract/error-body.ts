import { z } from 'zod'
import { errorCodeNames } from '../model/error-codes.ts'

/** One entry of a 422's `detail` (contract §2). */
export const ValidationItem = z.object({
  loc: z.array(z.union([z.string(), z.int()])),
  msg: z.string(),
  type: z.enum([
    'missing',
    'int_parsing',
    'float_parsing',
    'bool_parsing',
    'string_type',
    'string_too_short',
    'string_too_long',
    'string_pattern_mismatch',
    'greater_than',
    'greater_than_equal',
    'less_than',
    'less_than_equal',
    'literal_error',
    'list_type',
    'too_long',
    'extra_forbidden',
    'value_error',
    'json_invalid',
  ]),
  input: z.unknown().optional(),
  ctx: z.record(z.string(), z.unknown()).optional(),
})
export type ValidationItem = z.infer<typeof ValidationItem>

/** The one shape of every error, on both interfaces (contract §2). */
export const ErrorBody = z
  .object({
    error: z.object({
      code: z.enum(errorCodeNames),
      message: z.string(),
      details: z.record(z.string(), z.unknown()).optional(),
    }),
    /** What FastAPI clients read: the message, or for a 422 of validation the list of what is wrong. */
    detail: z.union([z.string(), z.array(ValidationItem)]),
    request_id: z.string(),
  })
  .meta({ id: 'ErrorBody' })
export type ErrorBody = z.infer<typeof ErrorBody>
