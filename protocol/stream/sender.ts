/**
 * The sending half of the reliable stream: pure, and the same in both directions. Entries live in the
 * caller's store; this decides which go out when, and which may be forgotten. The caller
 * - appends an entry in the transaction of the row that it reports, then dispatches `appended`;
 * - carries out the effects in their order;
 * - arms one timer on `arm`, replacing an earlier one, and dispatches `timeout` when it fires;
 * - on `fork` mints a new epoch, and starts again from `initialSender`; so too when its connection has ended.
 */

export interface SenderLimits {
  /** Entries in one batch. */
  batchEntries: number
  /** Entries sent ahead of the acknowledgement. */
  windowEntries: number
  /** Silence after which everything unacknowledged goes out again; doubles up to `maxRetryMs`. */
  retryMs: number
  maxRetryMs: number
}

export interface SenderState {
  epoch: string
  /** Acknowledged through here, by the receiver's commit; or overwritten, in a lossy stream. */
  base: number
  /** The newest entry in the store. */
  last: number
  /** Sent through here on this connection. */
  sent: number
  connected: boolean
  /** Consecutive timeouts without progress. */
  retries: number
  /** The timer runs. It is not wound up again by what is no progress: a busy store would put it off for ever. */
  armed: boolean
  /**
   * The base from which a gap has been answered already. One lost batch makes a gap of every batch behind it; answering
   * each with the whole window would flood the network that lost it.
   */
  answeredGap: number | null
}

export type SenderEvent =
  /**
   * The receiver told where it stands, under the same epoch. `ours`: the tag that it named is that of the sender's own
   * entry at the cursor (`isOurs`). `atLeast`: what it must have reached if its history is this sender's: for a hub the
   * base that its hello named; for the cloud its base at the first hello of a session, 0 at a repeated one.
   */
  | { type: 'connected'; cursor: number; ours: boolean; atLeast: number }
  | { type: 'appended'; last: number }
  /** A lossy stream has overwritten its entries through here. */
  | { type: 'overwritten'; through: number }
  | { type: 'acked'; epoch: string; cursor: number; ours: boolean; resend: boolean; fork: boolean }
  | { type: 'timeout' }

export type SenderEffect =
  | { type: 'send'; first: number; count: number }
  /** Entries through here are the receiver's now. Nothing but its acknowledgement after its commit says so (I4). */
  | { type: 'forget'; through: number }
  | { type: 'arm'; afterMs: number }
  | { type: 'disarm' }
  /** The receiver stands where this sender has never been: the histories differ, a new epoch is due. */
  | { type: 'fork' }

export interface SenderStep {
  state: SenderState
  effects: SenderEffect[]
}

export function initialSender(position: { epoch: string; base: number; last: number }): SenderState {
  const { epoch, base, last } = position
  return { epoch, base, last, sent: base, connected: false, retries: 0, armed: false, answeredGap: null }
}

/**
 * Whether a receiver's position lies in this sender's history, as far as the sender can know: it compares the tags where
 * it still has the entry (`tagAt` gives the tag at `base` too); what it forgot was compared before it was forgotten.
 */
export function isOurs(
  position: { cursor: number; tag: number },
  sender: { base: number; last: number },
  tagAt: (seq: number) => number | undefined,
): boolean {
  if (position.cursor > sender.last) return false
  return position.cursor < sender.base || tagAt(position.cursor) === position.tag
}

/** One step of the sender. */
export function stepSender(state: SenderState, event: SenderEvent, limits: SenderLimits): SenderStep {
  switch (event.type) {
    case 'connected': {
      if (event.cursor < event.atLeast || event.cursor > state.last || !event.ours) return fork(state)
      const base = Math.max(state.base, event.cursor)
      return pump(
        { ...state, base, sent: base, connected: true, retries: 0, armed: false, answeredGap: null },
        forget(state, base),
        limits,
      )
    }
    case 'appended':
      return pump({ ...state, last: Math.max(state.last, event.last) }, [], limits)
    case 'overwritten': {
      const base = Math.max(state.base, event.through)
      return pump(
        { ...state, base, last: Math.max(state.last, base), sent: Math.max(state.sent, base) },
        [],
        limits,
      )
    }
    case 'acked': {
      if (event.epoch !== state.epoch) return { state, effects: [] }
      if (event.fork || event.cursor > state.last || !event.ours) return fork(state)
      if (event.cursor < state.base) return { state, effects: [] }
      const base = event.cursor
      const progress = base > state.base
      const resend = event.resend && state.answeredGap !== base
      return pump(
        {
          ...state,
          base,
          sent: resend ? base : Math.max(state.sent, base),
          retries: progress ? 0 : state.retries,
          armed: state.armed && !progress && !resend,
          answeredGap: resend ? base : state.answeredGap,
        },
        forget(state, base),
        limits,
      )
    }
    case 'timeout':
      if (!state.connected || state.base === state.sent)
        return { state: { ...state, armed: false }, effects: [] }
      return pump(
        { ...state, sent: state.base, retries: state.retries + 1, armed: false, answeredGap: null },
        [],
        limits,
      )
  }
}

/** Nothing goes out any more, and nothing is forgotten, until the new epoch. */
function fork(state: SenderState): SenderStep {
  return { state: initialSender(state), effects: [{ type: 'disarm' }, { type: 'fork' }] }
}

function forget(state: SenderState, through: number): SenderEffect[] {
  return through > state.base ? [{ type: 'forget', through }] : []
}

/** Fills the window, then sees to the timer. */
function pump(state: SenderState, effects: SenderEffect[], limits: SenderLimits): SenderStep {
  if (!state.connected) return { state, effects }
  let sent = state.sent
  while (sent < state.last && sent - state.base < limits.windowEntries) {
    const count = Math.min(limits.batchEntries, state.last - sent, limits.windowEntries - (sent - state.base))
    effects.push({ type: 'send', first: sent + 1, count })
    sent += count
  }
  const armed = sent > state.base
  if (armed && !state.armed) {
    const afterMs = Math.min(limits.maxRetryMs, limits.retryMs * 2 ** Math.min(state.retries, 16))
    effects.push({ type: 'arm', afterMs })
  }
  if (!armed) effects.push({ type: 'disarm' })
  return { state: { ...state, sent, armed }, effects }
}
