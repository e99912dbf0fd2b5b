import { z } from 'zod'
import { Hex128 } from './session.ts'

/**
 * A cloud process publishes it each second, and also at once for a new process. `beat` counts the seconds. The process
 * counts as serving when it receives the messages of its share of the hubs (SPEC §7).
 */
export const Here = z.object({ process_id: z.string(), serving: z.boolean(), beat: z.int() })
export type Here = z.infer<typeof Here>

/** A cloud process has ended: its will, or its last message. */
export const Gone = z.object({ process_id: z.string() })
export type Gone = z.infer<typeof Gone>

/** A hub's outbox has grown. Only a hint: the process that sends the outbox also polls it. */
export const Nudge = z.object({ hub_id: z.int() })
export type Nudge = z.infer<typeof Nudge>

/** Requests a hub's clock from the process that receives the hub's messages. */
export const Ask = z.object({ hub_id: z.int() })
export type Ask = z.infer<typeof Ask>

/** The answer: the hub's monotonic clock. The value may be slightly old. */
export const HubClock = z.object({ hub_id: z.int(), session: Hex128, monotonic: z.number() })
export type HubClock = z.infer<typeof HubClock>

/**
 * Leases were handed to another process, which must read them in the database. `clocks` lets it send commands at once.
 */
export const Handed = z.object({ process_id: z.string(), clocks: z.array(HubClock) })
export type Handed = z.infer<typeof Handed>
