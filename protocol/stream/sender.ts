/**
 * The sending half of the reliable stream: pure, and the same in both directions. Entries live in the
 * caller's store; this decides which go out when, and which may be forgotten. The caller
 * - appends an entry in the transaction of the row that it reports, then dispatches `appended`;
 * - carries out the effects in their order;
 * - on `send` publishes one batch, and dispatches `sent` before any other event; where nothing is left to read it does not;
 * - arms one timer on `arm`, replacing an earlier one, and dispatches `timeout` when it fires;
 * - on `ask` asks where the receiver stands, and dispatches `connected` when the answer comes;
 * - on `fork` mints a new epoch, and starts again from `initialSender`; so too when its connection has ended.
 *
 * A connection loses nothing that it carries, however slowly: what is sent and not acknowledged is most likely under way.
 * So nothing goes out a second time but what the receiver says that it lacks: behind a gap, or in its answer to an `ask`.
 */

export interface SenderLimits {
  /** Entries in one batch. */
  batchEntries: number
  /** Bytes of entries in one batch; a longer entry goes alone. */
  batchBytes: number
  /** Bytes of entries sent ahead of the acknowledgement, at the beginning of a connection. */
  windowBytes: number
  /** The most of them. */
  maxWindowBytes: number
  /** The window grows by what is acknowledged within this, and shrinks where that takes twice as long. */
  promptMs: number
  /** Silence after which the receiver is asked where it stands; doubles up to `maxAskMs`. */
  askMs: number
  maxAskMs: number
}

/** A batch that is not acknowledged yet. */
export interface SentBatch {
  /** Its last entry. */
  last: number
  bytes: number
  /** On the caller's monotonic clock. */
  atMs: number
}

export interface SenderState {
  epoch: string
  /** Acknowledged through here, by the receiver's commit; or overwritten, in a lossy stream. */
  base: number
  /** The newest entry in the store. */
  last: number
  /** Sent through here on this connection. */
  sent: number
  /** What was sent behind `base`, in order. */
  outstanding: readonly SentBatch[]
  /** 0: as at the beginning of a connection. */
  windowBytes: number
  connected: boolean
  /** Consecutive timeouts without progress. */
  asked: number
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
   * base that its hello named; for the cloud its base at the first hello of a session, 0 at a repeated one. `sentBefore`:
   * what had been sent when it was asked, and came before the question; where the receiver lacks some of it, that is lost.
   */
  | { type: 'connected'; cursor: number; ours: boolean; atLeast: number; sentBefore: number }
  | { type: 'appended'; last: number }
  /** A lossy stream has overwritten its entries through here. */
  | { type: 'overwritten'; through: number }
  /** A batch has gone out, from the first entry that `send` named through `last`. */
  | ({ type: 'sent' } & SentBatch)
  | {
      type: 'acked'
      epoch: string
      cursor: number
      ours: boolean
      resend: boolean
      fork: boolean
      atMs: number
    }
  | { type: 'timeout' }

export type SenderEffect =
  /** One batch from `first` on: at most so many entries and bytes, one entry at least. */
  | { type: 'send'; first: number; entries: number; bytes: number }
  /** Entries through here are the receiver's now. Nothing but its acknowledgement after its commit says so (I4). */
  | { type: 'forget'; through: number }
  | { type: 'arm'; afterMs: number }
  | { type: 'disarm' }
  /** Nothing has been acknowledged for long: the receiver may have lost it, or died. */
  | { type: 'ask' }
  /** The receiver stands where this sender has never been: the histories differ, a new epoch is due. */
  | { type: 'fork' }

export interface SenderStep {
  state: SenderState
  effects: SenderEffect[]
}

export function initialSender(position: { epoch: string; base: number; last: number }): SenderState {
  const { epoch, base, last } = position
  return {
    epoch,
    base,
    last,
    sent: base,
    outstanding: [],
    windowBytes: 0,
    connected: false,
    asked: 0,
    armed: false,
    answeredGap: null,
  }
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
      const moved = moveBase(state, event.cursor)
      const isLost = !state.connected || moved.base < event.sentBefore
      const from = isLost ? sendAgain(moved) : moved
      const asked = moved.base > state.base ? 0 : state.asked
      return pump(
        { ...from, connected: true, asked, armed: false, answeredGap: null },
        forget(state, moved.base),
        limits,
      )
    }
    case 'appended':
      return pump({ ...state, last: Math.max(state.last, event.last) }, [], limits)
    case 'overwritten': {
      const moved = moveBase(state, event.through)
      return pump({ ...moved, last: Math.max(state.last, moved.base) }, [], limits)
    }
    case 'sent': {
      const { last, bytes, atMs } = event
      return pump(
        { ...state, sent: last, outstanding: [...state.outstanding, { last, bytes, atMs }] },
        [],
        limits,
      )
    }
    case 'acked': {
      if (event.epoch !== state.epoch) return { state, effects: [] }
      if (event.fork || event.cursor > state.last || !event.ours) return fork(state)
      if (event.cursor < state.base) return { state, effects: [] }
      const moved = { ...moveBase(state, event.cursor), windowBytes: adjustWindow(state, event, limits) }
      const { base } = moved
      const progress = base > state.base
      const resend = event.resend && state.answeredGap !== base
      return pump(
        {
          ...(resend ? sendAgain(moved) : moved),
          asked: progress ? 0 : state.asked,
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
      return pump({ ...state, asked: state.asked + 1, armed: false }, [{ type: 'ask' }], limits)
  }
}

/** Nothing goes out any more, and nothing is forgotten, until the new epoch. */
function fork(state: SenderState): SenderStep {
  return { state: initialSender(state), effects: [{ type: 'disarm' }, { type: 'fork' }] }
}

function forget(state: SenderState, through: number): SenderEffect[] {
  return through > state.base ? [{ type: 'forget', through }] : []
}

function moveBase(state: SenderState, through: number): SenderState {
  const base = Math.max(state.base, through)
  const outstanding = state.outstanding.filter((batch) => batch.last > base)
  return { ...state, base, sent: Math.max(state.sent, base), outstanding }
}

const sendAgain = (state: SenderState): SenderState => ({ ...state, sent: state.base, outstanding: [] })

/** A window that is larger than what the line carries in `promptMs` would only wait in front of it. */
function adjustWindow(
  state: SenderState,
  { cursor, atMs }: { cursor: number; atMs: number },
  { windowBytes: firstBytes, maxWindowBytes, promptMs }: SenderLimits,
): number {
  const acked = state.outstanding.filter((batch) => batch.last <= cursor)
  const bytes = state.windowBytes || firstBytes
  const newest = acked.at(-1)
  if (!newest) return bytes
  const tookMs = atMs - newest.atMs
  if (tookMs > 2 * promptMs) return Math.max(firstBytes, bytes / 2)
  return tookMs > promptMs ? bytes : Math.min(maxWindowBytes, bytes + sumBytes(acked))
}

const sumBytes = (batches: readonly SentBatch[]): number => batches.reduce((sum, { bytes }) => sum + bytes, 0)

/** So many batches fill a window. */
const BATCHES = 4

/** Sees to the timer, then sends the next batch where the window has room for it. */
function pump(state: SenderState, effects: SenderEffect[], limits: SenderLimits): SenderStep {
  if (!state.connected) return { state, effects }
  const { base, last, sent, outstanding, asked } = state
  const armed = sent > base
  if (!armed) effects.push({ type: 'disarm' })
  else if (!state.armed)
    effects.push({
      type: 'arm',
      afterMs: Math.min(limits.maxAskMs, limits.askMs * 2 ** Math.min(asked, 16)),
    })
  const windowBytes = state.windowBytes || limits.windowBytes
  const bytes = Math.max(1, Math.min(limits.batchBytes, Math.floor(windowBytes / BATCHES)))
  const hasRoom = outstanding.length === 0 || sumBytes(outstanding) + bytes <= windowBytes
  if (sent < last && hasRoom)
    effects.push({
      type: 'send',
      first: sent + 1,
      entries: Math.min(limits.batchEntries, last - sent),
      bytes,
    })
  return { state: { ...state, armed }, effects }
}
