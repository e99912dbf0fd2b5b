/**
 * The receiving half of the reliable stream: pure. In one transaction the caller applies the entries of the verdict and
 * moves its stored position. Then it acknowledges.
 *
 * A position contains the tag of the entry at its cursor. A batch contains the tag of the entry before its first. If
 * the two differ, the sender's store was restored from a copy, although its epoch is the same. Without tags, lost
 * entries and new entries with the same numbers would look equal.
 */

export interface ReceiverState {
  epoch: string | null
  /** The last applied entry. */
  cursor: number
  /** The tag of the entry at the cursor; 0 before the first. */
  tag: number
}

export interface BatchHead {
  epoch: string
  first: number
  previousTag: number
  /** The oldest entry that the sender still stores. */
  oldest: number
  /** The tags of the entries, in order. */
  tags: readonly number[]
}

export type Verdict =
  /** Drop the first `skip` entries, apply the rest, move to `next`, acknowledge. */
  | { kind: 'apply'; skip: number; next: ReceiverState }
  /** All entries are already applied: acknowledge again. */
  | { kind: 'duplicate' }
  /** Entries before the batch are missing: store nothing, acknowledge with `resend` (I8). */
  | { kind: 'gap' }
  /** Acknowledge with `fork`: the sender begins a new epoch. */
  | { kind: 'fork' }
  /** The epoch was not announced by `hello` or `welcome`: ignore the batch. */
  | { kind: 'foreign' }

export interface ReceiverOptions {
  /** The sender of a lossy stream overwrites its oldest entries: do not wait for those. */
  lossy: boolean
}

/**
 * How to handle the epoch that a sender announces. `same`: continue. `new`: follow it from 0 and keep the old one as
 * history. `left`: the receiver has followed a later one since. A `left` epoch comes from an old message or a restored
 * sender. The receiver never returns to it, because it would apply entries twice; it answers `fork` or `restart`.
 */
export function judgeEpoch(
  current: string | null,
  offered: string,
  hasLeft: (epoch: string) => boolean,
): 'same' | 'new' | 'left' {
  if (offered === current) return 'same'
  return hasLeft(offered) ? 'left' : 'new'
}

export function judgeBatch(state: ReceiverState, batch: BatchHead, options: ReceiverOptions): Verdict {
  if (batch.epoch !== state.epoch) return { kind: 'foreign' }
  const last = batch.first + batch.tags.length - 1
  const lost = options.lossy && batch.oldest > state.cursor + 1
  const cursor = lost ? batch.oldest - 1 : state.cursor
  if (batch.first > cursor + 1) return { kind: 'gap' }
  if (!lost && batch.first <= cursor + 1) {
    const offset = cursor - batch.first
    const theirs = offset < 0 ? batch.previousTag : batch.tags[offset]
    if (theirs !== undefined && theirs !== state.tag) return { kind: 'fork' }
  }
  if (last <= cursor) return { kind: 'duplicate' }
  return {
    kind: 'apply',
    skip: cursor + 1 - batch.first,
    next: { epoch: batch.epoch, cursor: last, tag: batch.tags.at(-1)! },
  }
}
