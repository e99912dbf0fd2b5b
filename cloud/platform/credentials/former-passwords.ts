import { z } from 'zod'

/** A password that was renewed with an overlap, and when it ends. */
const FormerPassword = z.object({ digest: z.string(), until: z.number() })
export type FormerPassword = z.infer<typeof FormerPassword>

const Stored = z.array(FormerPassword)

/** The former passwords (JSON) that are still valid. */
export const formerPasswords = (stored: string | null, now: number): FormerPassword[] =>
  stored === null ? [] : Stored.parse(JSON.parse(stored)).filter(({ until }) => now < until)
