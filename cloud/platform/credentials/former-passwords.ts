import { z } from 'zod'

/** A password that was replaced with an overlap, and its end. */
const FormerPassword = z.object({ digest: z.string(), until: z.number() })
export type FormerPassword = z.infer<typeof FormerPassword>

const Stored = z.array(FormerPassword)

/** The former passwords (JSON) that are still valid. */
export const formerPasswords = (stored: string | null, now: number): FormerPassword[] =>
  stored === null ? [] : Stored.parse(JSON.parse(stored)).filter(({ until }) => now < until)
