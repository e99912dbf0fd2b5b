import {
  OLDEST_SERIAL_VERSION,
  SERIAL_PROTOCOL_VERSION,
  type Frame,
  type FrameOf,
} from '../../protocol/serial/frames.ts'
import type { LinkSettings } from '../../protocol/settings/hub-limits.ts'
import { isOfFirmware } from './link-state.ts'
import type {
  Common,
  Delivered,
  Greeting,
  LinkEffect,
  LinkEvent,
  LinkState,
  LinkStep,
  Outstanding,
  Request,
  Unrepeated,
  Up,
  WrittenFrame,
} from './link-state.ts'

/**
 * One controller's line as a pure state machine: `step(state, event) → (state, effects)`. The shell
 * (`serial-link.ts`) owns the port and two timers, and performs the effects in order.
 *
 * The host has one outstanding frame at a time and repeats it until it is acknowledged; then it sends the
 * next one. A controller's frame is acknowledged after its handler has returned (`deliver`, then `handled`).
 * A frame that was handled before is acknowledged again but not handled again.
 */

/** Number of handled frames that are remembered: far more than a controller has outstanding at once. */
const MEMORY = 64

/**
 * Milliseconds that a handled frame is remembered after it last arrived. Its repetitions arrive far earlier, and the number
 * belongs to another frame only hours later: the numbers begin again after 65,536 frames (SPEC §4).
 */
const SEEN_MS = 10_000

/** One step. `nowMs` is monotonic. */
export function stepLink(
  state: LinkState,
  event: LinkEvent,
  nowMs: number,
  settings: LinkSettings,
): LinkStep {
  if (event.type === 'start')
    return state.phase === 'stopped' ? open({ attempt: 0, events: state.events }, settings) : stay(state)
  if (event.type === 'stop')
    return {
      state: { phase: 'stopped', attempt: 0, events: state.events },
      effects: [{ type: 'disarm', timer: 'retry' }, { type: 'disarm', timer: 'pulse' }, { type: 'close' }],
    }
  if (event.type === 'reopen') return reopen(state, event.reason, settings)
  switch (state.phase) {
    case 'stopped':
      return stay(state)
    case 'waiting':
      return event.type === 'timer' && event.timer === 'pulse' ? open(state, settings) : stay(state)
    case 'opening':
      return stepOpening(state, event, nowMs, settings)
    case 'greeting':
      return stepGreeting(state, event, nowMs, settings)
    case 'up':
      return stepUp(state, event, nowMs, settings)
  }
}

/** The states and events of single phases. */
type Opening = Extract<LinkState, { phase: 'opening' }>
type PhaseEvent = Exclude<LinkEvent, { type: 'start' | 'stop' | 'reopen' }>

const stay = (state: LinkState): LinkStep => ({ state, effects: [] })

function open({ attempt, events }: Common, settings: LinkSettings): LinkStep {
  return {
    state: { phase: 'opening', attempt, events, proto: SERIAL_PROTOCOL_VERSION },
    effects: [{ type: 'open' }, { type: 'arm', timer: 'pulse', afterMs: settings.silentMs }],
  }
}

/**
 * Milliseconds that an open port waits for the answer to HELLO before it is closed and reopened. Some boards
 * restart when their port opens; a board that boots slowly would never answer within a fixed time.
 */
const greetMs = (attempt: number, { silentMs, maxGreetMs }: LinkSettings): number =>
  Math.max(silentMs, Math.min(maxGreetMs, silentMs * 2 ** Math.min(attempt, 16)))

/** Ends a connection in any phase, and waits for the next attempt. */
function fall(state: LinkState, reason: string, boot?: string): LinkStep {
  const { attempt, events } = state
  return {
    state: { phase: 'waiting', attempt: attempt + 1, events },
    effects: [
      { type: 'disarm', timer: 'retry' },
      { type: 'close' },
      { type: 'back_off', attempt },
      { type: 'down', reason, wasUp: state.phase === 'up', ...(boot !== undefined && { boot }) },
    ],
  }
}

/** A new connection on request, without the back-off of earlier failures. */
function reopen(state: LinkState, reason: string, settings: LinkSettings): LinkStep {
  switch (state.phase) {
    case 'stopped':
      return stay(state)
    case 'waiting':
      return open({ attempt: 0, events: state.events }, settings)
    case 'opening':
    case 'greeting':
    case 'up':
      return fall({ ...state, attempt: 0 }, reason)
  }
}

function stepOpening(state: Opening, event: PhaseEvent, nowMs: number, settings: LinkSettings): LinkStep {
  switch (event.type) {
    case 'opened': {
      const { host } = event
      const { attempt, events, proto } = state
      const frame = { seq: event.seq, type: 'HELLO', proto, host } as const
      const hello = { frame, repeats: 0, sinceMs: nowMs }
      const seq = following(event.seq)
      return {
        state: { phase: 'greeting', attempt, events, proto, host, seq, hello },
        effects: [
          { type: 'write', frame },
          { type: 'arm', timer: 'retry', afterMs: settings.retryMs },
          { type: 'arm', timer: 'pulse', afterMs: greetMs(attempt, settings) },
        ],
      }
    }
    case 'closed':
      return fall(state, event.reason)
    case 'timer':
      return event.timer === 'pulse' ? fall(state, 'the port does not open') : stay(state)
    case 'received':
    case 'unreadable':
    case 'handled':
    case 'submit':
      return stay(state)
  }
}

/**
 * A controller of an older version has not accepted the session. The host offers that version on the same
 * port, once.
 */
function speakOlder({ attempt, events, proto, ...state }: Greeting, theirs: number): LinkStep {
  if (theirs >= proto || theirs < OLDEST_SERIAL_VERSION)
    return fall(
      { attempt, events, proto, ...state },
      `the controller speaks version ${theirs} of the protocol`,
    )
  return {
    state: { phase: 'opening', attempt, events, proto: theirs },
    effects: [{ type: 'disarm', timer: 'retry' }, { type: 'renew' }],
  }
}

function stepGreeting(state: Greeting, event: PhaseEvent, nowMs: number, settings: LinkSettings): LinkStep {
  switch (event.type) {
    case 'received':
      return greeted(state, event.frame, nowMs, settings)
    case 'closed':
      return fall(state, event.reason)
    case 'timer': {
      if (event.timer === 'pulse') return fall(state, 'no answer to HELLO')
      const { again, effects } = repeat(state.hello, settings)
      return { state: { ...state, hello: again }, effects }
    }
    case 'opened':
    case 'unreadable':
    case 'handled':
    case 'submit':
      return stay(state)
  }
}

function greeted(state: Greeting, frame: Frame, nowMs: number, settings: LinkSettings): LinkStep {
  if (frame.type === 'NAK' && frame.s === state.hello.frame.seq)
    return fall(state, `HELLO refused: ${frame.why}`)
  // Only an answer to this HELLO counts: the line may still contain frames of an earlier session (SPEC §5).
  if (frame.type !== 'WELCOME' || frame.host !== state.host) return stay(state)
  if (frame.proto !== state.proto) return speakOlder(state, frame.proto)
  const { host, seq } = state
  const events = state.events?.boot === frame.boot ? state.events : { boot: frame.boot, numbers: [] }
  return {
    state: {
      phase: 'up',
      attempt: 0,
      events,
      host,
      seq,
      welcome: frame,
      outstanding: undefined,
      queue: [],
      seen: [],
      heardMs: nowMs,
      listing: undefined,
    },
    effects: [
      { type: 'arm', timer: 'pulse', afterMs: settings.pingMs },
      { type: 'deliver', frame, listed: [] },
    ],
  }
}

function stepUp(state: Up, event: PhaseEvent, nowMs: number, settings: LinkSettings): LinkStep {
  switch (event.type) {
    case 'received':
      return receive(state, event.frame, nowMs, settings)
    case 'handled':
      return handled(state, event.frame, nowMs)
    case 'unreadable':
      return send(state, { type: 'NAK', s: event.seq, why: event.why })
    case 'submit':
      return submit(state, event.request, nowMs, settings)
    case 'closed':
      return fall(state, event.reason)
    case 'timer':
      return event.timer === 'pulse' ? ping(state, nowMs, settings) : retry(state, nowMs, settings)
    case 'opened':
      return stay(state)
  }
}

function receive(state: Up, frame: Frame, nowMs: number, settings: LinkSettings): LinkStep {
  switch (frame.type) {
    case 'ACK':
    case 'NAK':
      return answered({ ...state, heardMs: nowMs }, frame, nowMs, settings)
    case 'PONG':
      return stay({ ...state, heardMs: nowMs })
    case 'WELCOME':
      // The controller restarted, so its running operations are interrupted (SPEC §5, boot).
      if (frame.boot !== state.welcome.boot) return fall(state, 'the controller restarted', frame.boot)
      return frame.host === state.host ? acknowledge(state, frame.seq) : stay(state)
    case 'RES':
    case 'EVT':
    case 'OPS':
    case 'END':
    case 'FW':
      return isSeen(state, frame.seq, nowMs)
        ? acknowledgeHandled(state, frame.seq, nowMs)
        : accept(state, frame, nowMs)
    case 'HELLO':
    case 'PING':
    case 'CMD':
    case 'QRY':
    case 'LST':
    case 'OWN':
    case 'FWQ':
    case 'IMG':
    case 'BLK':
    case 'USE':
    case 'KEEP':
      // An echo of the host's own frame: a port with local echo, or a loop.
      return stay(state)
  }
}

const isSeen = ({ seen }: Up, seq: number, nowMs: number): boolean =>
  seen.some((frame) => frame.seq === seq && nowMs - frame.atMs < SEEN_MS)

function accept(state: Up, frame: FrameOf<'RES' | 'EVT' | 'OPS' | 'END' | 'FW'>, nowMs: number): LinkStep {
  switch (frame.type) {
    case 'RES':
    case 'FW':
      return { state, effects: [{ type: 'deliver', frame, listed: [] }] }
    case 'EVT':
      return state.events?.numbers.includes(frame.ev)
        ? acknowledgeHandled(state, frame.seq, nowMs)
        : { state, effects: [{ type: 'deliver', frame, listed: [] }] }
    case 'OPS': {
      const listing = state.listing && [...state.listing, frame]
      return acknowledgeHandled({ ...state, listing }, frame.seq, nowMs)
    }
    case 'END': {
      if (!state.listing) return acknowledgeHandled(state, frame.seq, nowMs)
      // An OPS before this END was lost. The END stays unacknowledged, so it is repeated after the OPS.
      if (state.listing.length < frame.n) return stay(state)
      return { state, effects: [{ type: 'deliver', frame, listed: state.listing }] }
    }
  }
}

function handled(state: Up, frame: Delivered, nowMs: number): LinkStep {
  const events =
    frame.type === 'EVT' && state.events
      ? { ...state.events, numbers: [...state.events.numbers, frame.ev].slice(-MEMORY) }
      : state.events
  const listing = frame.type === 'END' ? undefined : state.listing
  return acknowledgeHandled({ ...state, events, listing }, frame.seq, nowMs)
}

/** Acknowledges a frame, and remembers that it was handled. */
function acknowledgeHandled(state: Up, seq: number, nowMs: number): LinkStep {
  const others = state.seen.filter((frame) => frame.seq !== seq)
  return acknowledge({ ...state, seen: [...others, { seq, atMs: nowMs }].slice(-MEMORY) }, seq)
}

function answered(state: Up, frame: FrameOf<'ACK' | 'NAK'>, nowMs: number, settings: LinkSettings): LinkStep {
  const sent = state.outstanding?.frame
  if (sent?.seq !== frame.s) return stay(state)
  const freed: Up = { ...state, outstanding: undefined }
  // The controller has a new memory now. Only a new WELCOME reports it.
  if (frame.type === 'ACK' && sent.type === 'OWN' && sent.wipe) return fall(state, 'it was taken over')
  const why = frame.type === 'NAK' ? frame.why : undefined
  if (isOfFirmware(sent) && why !== 'stale_host')
    return pump(freed, nowMs, settings, [
      { type: 'disarm', timer: 'retry' },
      { type: 'answered', request: sent, why },
    ])
  if (frame.type === 'ACK') return pump(freed, nowMs, settings, [{ type: 'disarm', timer: 'retry' }])
  if (sent.type === 'OWN' && frame.why !== 'stale_host')
    return pump(freed, nowMs, settings, [
      { type: 'disarm', timer: 'retry' },
      { type: 'not_owned', why: frame.why },
    ])
  if (sent.type !== 'CMD') return fall(state, `${sent.type} refused: ${frame.why}`)
  // `stale_host` proves nothing about an earlier copy of the command. The operation stays open, and the next
  // session queries it (SPEC §6).
  if (frame.why === 'stale_host') return fall(state, 'the controller lost its session')
  return pump(freed, nowMs, settings, [
    { type: 'disarm', timer: 'retry' },
    { type: 'refused', command: sent, why: frame.why },
  ])
}

function submit(state: Up, request: Request, nowMs: number, settings: LinkSettings): LinkStep {
  if (request.type !== 'LST') return pump({ ...state, queue: [...state.queue, request] }, nowMs, settings, [])
  // One listing at a time: a second request joins the first.
  if (state.listing) return stay(state)
  return pump({ ...state, listing: [], queue: [...state.queue, request] }, nowMs, settings, [])
}

/** Sends the next request if no frame is outstanding. */
function pump(state: Up, nowMs: number, settings: LinkSettings, effects: LinkEffect[]): LinkStep {
  const [request, ...queue] = state.queue
  if (state.outstanding || !request) return { state, effects }
  const frame: Outstanding['frame'] =
    request.type === 'CMD' ? { seq: state.seq, ...request, host: state.host } : { seq: state.seq, ...request }
  return {
    state: {
      ...state,
      queue,
      seq: following(state.seq),
      outstanding: { frame, repeats: 0, sinceMs: nowMs },
    },
    effects: [
      ...effects,
      { type: 'write', frame },
      { type: 'arm', timer: 'retry', afterMs: settings.retryMs },
    ],
  }
}

function retry(state: Up, nowMs: number, settings: LinkSettings): LinkStep {
  if (!state.outstanding) return stay(state)
  if (nowMs - state.outstanding.sinceMs >= settings.giveUpMs)
    return fall(state, `${state.outstanding.frame.type} is not acknowledged`)
  const { again, effects } = repeat(state.outstanding, settings)
  return { state: { ...state, outstanding: again }, effects }
}

function repeat(
  outstanding: Outstanding,
  settings: LinkSettings,
): { again: Outstanding; effects: LinkEffect[] } {
  const repeats = outstanding.repeats + 1
  const afterMs = Math.min(settings.maxRetryMs, settings.retryMs * 2 ** Math.min(repeats, 16))
  return {
    again: { ...outstanding, repeats },
    effects: [
      { type: 'write', frame: outstanding.frame },
      { type: 'arm', timer: 'retry', afterMs },
    ],
  }
}

function ping(state: Up, nowMs: number, settings: LinkSettings): LinkStep {
  if (nowMs - state.heardMs >= settings.silentMs) return fall(state, 'the port is silent')
  const pinged = send(state, { type: 'PING', t: Math.floor(nowMs) % 1_000_000_000 })
  pinged.effects.push({ type: 'arm', timer: 'pulse', afterMs: settings.pingMs })
  return pinged
}

const acknowledge = (state: Up, s: number): LinkStep => send(state, { type: 'ACK', s })

/** Writes a frame that is not repeated. */
function send(state: Up, body: Unrepeated): LinkStep {
  const frame: WrittenFrame = { seq: state.seq, ...body }
  return { state: { ...state, seq: following(state.seq) }, effects: [{ type: 'write', frame }] }
}

const following = (seq: number): number => (seq + 1) % 0x10000
