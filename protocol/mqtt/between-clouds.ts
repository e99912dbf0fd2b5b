import { z } from 'zod'
import { Hex128 } from './session.ts'

/**
 * Says every second that a cloud process is there, and the same between two seconds to whoever has come: `beat` counts the
 * seconds. The process counts from when it hears its share of the hubs (SPEC §7).
 */
export const Here = z.object({ process_id: z.string(), serving: z.boolean(), beat: z.int() })
export type Here = z.infer<typeof Here>

/** A cloud process that is there no more: its will, or its last word. */
export const Gone = z.object({ process_id: z.string() })
export type Gone = z.infer<typeof Gone>

/** A hub's outbox has grown. A hint: whoever sends it also looks by itself. */
export const Nudge = z.object({ hub_id: z.int() })
export type Nudge = z.infer<typeof Nudge>

/** Asks whoever hears a hub what its clock is. */
export const Ask = z.object({ hub_id: z.int() })
export type Ask = z.infer<typeof Ask>

/** The answer: what a hub's monotonic clock was, or is by now a little later. */
export const HubClock = z.object({ hub_id: z.int(), session: Hex128, monotonic: z.number() })
export type HubClock = z.infer<typeof HubClock>

/** Leases were handed to another process: it is to look into the database. With what it needs to send commands at once. */
export const Handed = z.object({ process_id: z.string(), clocks: z.array(HubClock) })
export type Handed = z.infer<typeof Handed>
