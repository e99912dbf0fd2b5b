import type { z } from 'zod'

/** Reads a payload: `undefined` where it is not JSON or does not fit its schema (SPEC §1). */
export function decode<S extends z.ZodType>(schema: S, payload: string): z.infer<S> | undefined {
  try {
    return schema.safeParse(JSON.parse(payload)).data
  } catch {
    return undefined
  }
}
