/**
 * The sending half of the reliable stream: pure, and the same in both directions. The caller stores the entries; this
 * code decides when to send them and which to delete. The caller
 *
 * - appends an entry in the transaction that changes the reported row, then dispatches `appended`;
 * - executes the effects in their order;
 * - on `send` publishes one batch and dispatches `sent` before any other event, or nothing if no entry is left to read;
 * - on `arm` starts one timer, which replaces an earlier one, and dispatches `timeout` when it fires;
 * - on `ask` requests the receiver's position, and dispatches `connected` when the answer arrives;
 * - on `fork`, and after its connection has ended, begins again with `initialSender`; on `fork` with a new epoch.
 *
 * A connection loses nothing that it carries, however slow it is, so an unacknowledged entry is probably still under
 * way. Only entries that the receiver reports as missing are sent again: after a gap, or after its answer to `ask`.
 */

export interface SenderLimits {
  /** Maximum of entries in one batch. */
  batchEntries: number
  /** Maximum of bytes in one batch; a longer entry is sent in a batch of its own. */
  batchBytes: number
  /** Bytes that may be sent ahead of the acknowledgement at the beginning of a connection. */
  windowBytes: number
  /** Maximum of `windowBytes`. */
  maxWindowBytes: number
  /** The window grows by the bytes that are acknowledged within this time, and shrinks if it takes twice as long. */
  promptMs: number
  /** Silence after which the sender requests the receiver's position; doubles up to `maxAskMs`. */
  askMs: number
  maxAskMs: number
}

/** A batch that is not acknowledged yet. */
export interface SentBatch {
  /** Its last entry. */
  last: number
  bytes: number
  /** When it was sent, on the caller's monotonic clock. */
  atMs: number
}

export interface SenderState {
  epoch: string
  /**
   * The last entry that the receiver has committed and acknowledged; in a lossy stream also the last overwritten one.
   */
  base: number
  /** The newest entry in the store. */
  last: number
  /** The last entry that was sent on this connection. */
  sent: number
  /** The batches that were sent after `base`, in order. */
  outstanding: readonly SentBatch[]
  /** 0 at the beginning of a connection. */
  windowBytes: number
  connected: boolean
  /** Consecutive timeouts without progress. */
  asked: number
  /** The timer runs. Only progress restarts it: otherwise a busy store would delay it without end. */
  armed: boolean
  /**
   * The base at which a gap was answered. One lost batch makes a gap for every later batch. Answering each with the
   * whole window would flood the network that lost it.
   */
  answeredGap: number | null
}

export type SenderEvent =
  /**
   * The receiver's position under the same epoch. `ours`: its tag equals the tag of the sender's own entry at the
   * cursor (`isOurs`). `atLeast`: the position that it must have reached if the histories agree. For a hub this is the
   * base in its hello. For the cloud it is its base at the first hello of a session, and 0 at a repeated one.
   * `sentBefore`: the last entry that was sent before the request; if the receiver lacks some of them, they are lost.
   */
  | { type: 'connected'; cursor: number; ours: boolean; atLeast: number; sentBefore: number }
  | { type: 'appended'; last: number }
  /** A lossy stream has overwritten its entries up to `through`. */
  | { type: 'overwritten'; through: number }
  /** A batch was sent, from the first entry of the effect `send` to `last`. */
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
  /** Send one batch that begins at `first`: at most `entries` entries and `bytes` bytes, but at least one entry. */
  | { type: 'send'; first: number; entries: number; bytes: number }
  /** Delete entries up to `through`. Only the receiver's acknowledgement after its commit allows this (I4). */
  | { type: 'forget'; through: number }
  | { type: 'arm'; afterMs: number }
  | { type: 'disarm' }
  /** No acknowledgement for a long time: the receiver may have lost the entries, or died. */
  | { type: 'ask' }
  /** The receiver's position is not in this sender's history: begin a new epoch. */
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
 * Whether a receiver's position is in this sender's history. Compares the tags if the sender still stores the entry;
 * `tagAt` also has the tag at `base`. Deleted entries were compared before they were deleted.
 */
export function isOurs(
  position: { cursor: number; tag: number },
  sender: { base: number; last: number },
  tagAt: (seq: number) => number | undefined,
): boolean {
  if (position.cursor > sender.last) return false
  return position.cursor < sender.base || tagAt(position.cursor) === position.tag
}

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

/** Sends and deletes nothing until the new epoch. */
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

/** A window larger than the line carries in `promptMs` would only queue in front of the line. */
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

/** Number of batches that fill a window. */
const BATCHES = 4

/** Updates the timer, then sends the next batch if the window has room. */
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

/** After this number of consecutive connections without an acknowledgement, one entry is sent at a time. */
const DEAD_CONNECTIONS = 2
/** An acknowledged batch of this size proves that the path carries full-size packets. */
const PROOF_BYTES = 16 * 1024
/** How long one entry is sent at a time after larger batches ended a connection. */
const HOLD_MS = 5 * 60_000

/**
 * Limits the batches on a path that may drop large packets, as some mobile networks and tunnels do. Such a path carries
 * hellos and heartbeats, but no batch. After two connections without an acknowledgement, a connection begins with one
 * entry at a time. Each acknowledgement lets the window grow again. If a connection then ends with an unacknowledged
 * entry, the window does not grow for five minutes. Pure: times are on the caller's monotonic clock.
 */
export class Reach {
  #dead = 0
  #isSlow = false
  #heldUntilMs = -Infinity
  #isAcked = false

  /** The present limits. */
  limits(usual: SenderLimits, nowMs: number): SenderLimits {
    if (!this.#isSlow) return usual
    // A window of one byte admits one batch of one entry.
    const maxWindowBytes = nowMs < this.#heldUntilMs ? 1 : usual.maxWindowBytes
    return { ...usual, windowBytes: 1, maxWindowBytes }
  }

  /** A new connection begins to carry batches. */
  connected(): void {
    this.#isAcked = false
  }

  /** The receiver has acknowledged progress. `bytes`: the size of the largest acknowledged batch. */
  acked(bytes: number): void {
    this.#dead = 0
    this.#isAcked = true
    if (bytes >= PROOF_BYTES) this.#isSlow = false
  }

  /** The connection has ended. `isWaiting`: an entry was sent and not acknowledged. */
  ended(isWaiting: boolean, nowMs: number): void {
    if (!isWaiting) return
    if (this.#isSlow) {
      if (this.#isAcked) this.#heldUntilMs = nowMs + HOLD_MS
      return
    }
    this.#dead = this.#isAcked ? 0 : this.#dead + 1
    if (this.#dead >= DEAD_CONNECTIONS) this.#isSlow = true
  }
}

/** The size of the largest batch up to this entry, in bytes. */
export const bytesOfLargest = (outstanding: readonly SentBatch[], through: number): number =>
  Math.max(0, ...outstanding.filter(({ last }) => last <= through).map(({ bytes }) => bytes))
