import type { z } from 'zod'

/** An optional field of a document that another service sends. A value of another type counts as absent. */
export const optional = <T extends z.ZodType>(type: T) => type.nullish().catch(undefined)
