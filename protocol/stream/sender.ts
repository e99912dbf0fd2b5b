/**
 * The sending half of the reliable stream (design §4): pure, and the same in both directions. Entries live in the
 * caller's store; this decides which go out when, and which may be forgotten. The caller
 * - appends an entry in the transaction of the row that it reports, then dispatches `appended`;
 * - carries out the effects in their order;
 * - arms one timer on `arm`, replacing an earlier one, and dispatches `timeout` when it fires.
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
  /** Acknowledged through here, by the receiver's commit. */
  base: number
  /** The newest entry in the store. */
  last: number
  /** Sent through here on this connection. */
  sent: number
  connected: boolean
  /** Consecutive timeouts without progress. */
  retries: number
}

export type SenderEvent =
  /** The receiver told where it stands (in `welcome` or `hello`), under the same epoch. */
  | { type: 'connected'; cursor: number }
  | { type: 'disconnected' }
  | { type: 'appended'; last: number }
  | { type: 'acked'; epoch: string; cursor: number; resend: boolean }
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
  return { ...position, sent: position.base, connected: false, retries: 0 }
}

/** One step of the sender. */
export function stepSender(state: SenderState, event: SenderEvent, limits: SenderLimits): SenderStep {
  switch (event.type) {
    case 'connected': {
      if (event.cursor > state.last || event.cursor < state.base)
        return { state, effects: [{ type: 'fork' }] }
      const base = event.cursor
      const forget: SenderEffect[] = base > state.base ? [{ type: 'forget', through: base }] : []
      return pump({ ...state, base, sent: base, connected: true, retries: 0 }, forget, limits)
    }
    case 'disconnected':
      return {
        state: { ...state, connected: false, sent: state.base, retries: 0 },
        effects: [{ type: 'disarm' }],
      }
    case 'appended':
      return pump({ ...state, last: Math.max(state.last, event.last) }, [], limits)
    case 'acked': {
      if (event.epoch !== state.epoch) return { state, effects: [] }
      if (event.cursor > state.last) return { state, effects: [{ type: 'fork' }] }
      const progress = event.cursor > state.base
      const base = Math.max(state.base, event.cursor)
      const sent = event.resend && event.cursor >= state.base ? base : Math.max(state.sent, base)
      const forget: SenderEffect[] = progress ? [{ type: 'forget', through: base }] : []
      return pump({ ...state, base, sent, retries: progress ? 0 : state.retries }, forget, limits)
    }
    case 'timeout':
      if (!state.connected || state.base === state.sent) return { state, effects: [] }
      return pump({ ...state, sent: state.base, retries: state.retries + 1 }, [], limits)
  }
}

/** Fills the window, then arms or disarms the timer. */
function pump(state: SenderState, effects: SenderEffect[], limits: SenderLimits): SenderStep {
  if (!state.connected) return { state, effects }
  let sent = state.sent
  while (sent < state.last && sent - state.base < limits.windowEntries) {
    const count = Math.min(limits.batchEntries, state.last - sent, limits.windowEntries - (sent - state.base))
    effects.push({ type: 'send', first: sent + 1, count })
    sent += count
  }
  const afterMs = Math.min(limits.maxRetryMs, limits.retryMs * 2 ** Math.min(state.retries, 16))
  effects.push(sent > state.base ? { type: 'arm', afterMs } : { type: 'disarm' })
  return { state: { ...state, sent }, effects }
}
