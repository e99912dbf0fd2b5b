import { z } from 'zod'
import { Hex128, Seq, Tag } from './session.ts'

/** A batch of contiguous entries of one stream, in either direction. `Body` is validated entry by entry (I8). */
export const Batch = z.object({
  epoch: Hex128,
  /** The sequence number of `entries[0]`. */
  first: Seq.min(1),
  /** The tag of entry `first - 1` (0 for the first of an epoch). */
  previousTag: Tag,
  /** The oldest entry that the sender still has; a lossy stream may begin there (SPEC §5). */
  oldest: Seq.min(1),
  entries: z
    .array(z.object({ tag: Tag, body: z.unknown() }))
    .min(1)
    .max(2000),
})
export type Batch = z.infer<typeof Batch>

/** The receiver's cumulative acknowledgement, sent after its commit. */
export const Ack = z.object({
  stream: z.enum(['ledger', 'telemetry', 'outbox']),
  epoch: Hex128,
  cursor: Seq,
  /** The tag of the entry at the cursor; 0 before the first. A sender with another one there forgets nothing. */
  tag: Tag,
  /** Something is missing behind the cursor: send again from there. */
  resend: z.boolean(),
  /** The receiver's history is not the sender's: begin a new epoch. */
  fork: z.boolean(),
})
export type Ack = z.infer<typeof Ack>
