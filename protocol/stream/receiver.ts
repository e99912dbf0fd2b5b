/**
 * The receiving half of the reliable stream: pure. The caller applies what it is told to, and moves its
 * stored position, in one transaction; then acknowledges.
 *
 * A position carries the tag of the entry at its cursor. A batch names the tag of the entry before its first: where the
 * two differ, the sender's store is not the one that sent what was applied here (it was restored from a copy), although
 * its epoch is the same. Without this, the entries that the copy had lost and others that took their numbers would be
 * taken for the same.
 */

export interface ReceiverState {
  epoch: string | null
  /** Applied through here. */
  cursor: number
  /** The tag of the entry at the cursor; 0 before the first. */
  tag: number
}

export interface BatchHead {
  epoch: string
  first: number
  previousTag: number
  /** The oldest entry that the sender still has. */
  oldest: number
  /** The tags of the entries, in order. */
  tags: readonly number[]
}

export type Verdict =
  /** Drop the first `skip` entries, apply the rest, move to `next`, acknowledge. */
  | { kind: 'apply'; skip: number; next: ReceiverState }
  /** All of it is applied already: acknowledge again. */
  | { kind: 'duplicate' }
  /** Entries are missing before it: hold nothing, acknowledge with `resend` (I8). */
  | { kind: 'gap' }
  /** Acknowledge with `fork`: the sender begins a new epoch. */
  | { kind: 'fork' }
  /** Of an epoch that `hello` or `welcome` has not announced: ignore it. */
  | { kind: 'foreign' }

export interface ReceiverOptions {
  /** A lossy stream's sender overwrites its oldest entries: what it no longer has is not waited for. */
  lossy: boolean
}

/**
 * What to do with the epoch that a sender announces: `same`; `new`: take it up from 0, and keep the old one as history;
 * `left`: the receiver has moved on from it. That is an old message, or a sender restored to its past: a receiver never
 * goes back (it would apply again what it has applied), but answers `fork` or `restart`.
 */
export function judgeEpoch(
  current: string | null,
  offered: string,
  hasLeft: (epoch: string) => boolean,
): 'same' | 'new' | 'left' {
  if (offered === current) return 'same'
  return hasLeft(offered) ? 'left' : 'new'
}

/** Judges one batch. */
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
