/** The sessions of a hub that this process knows. */
export interface Sessions {
  current: string | null
  /**
   * The hub's monotonic clock in the session's latest hello. -Infinity if another process answered it. Infinity if the
   * connection has ended: later messages of the session are no longer valid.
   */
  helloAt: number
  /**
   * The same for former sessions, the latest last. Their messages are late, except a hello later than all others of its
   * session: the supposedly newer session may have been the delayed last message of an ended one. Only the connected
   * hub continues to send hellos.
   */
  former: ReadonlyMap<string, number>
}

export const noSessions: Sessions = { current: null, helloAt: -Infinity, former: new Map() }

/** Number of former sessions that are remembered. */
const FORMER_SESSIONS = 8

const latestHello = ({ current, helloAt, former }: Sessions, session: string): number =>
  session === current ? helloAt : (former.get(session) ?? -Infinity)

/** Whether a hello is late: a later one of its session has arrived, or its connection has ended. */
export const isLate = (sessions: Sessions, session: string, monotonic: number): boolean =>
  monotonic <= latestHello(sessions, session)

/** The sessions after a hello of `session`, or after a heartbeat of a session that another process welcomed. */
export function entered(sessions: Sessions, session: string, monotonic: number): Sessions {
  // Its connection may have ended while the hello was being answered.
  const helloAt = Math.max(monotonic, latestHello(sessions, session))
  const { current, former } = sessions
  const left = current === null ? [] : [[current, sessions.helloAt] as const]
  const others = [...former, ...left].filter(([id]) => id !== session)
  return { current: session, helloAt, former: new Map(others.slice(-FORMER_SESSIONS)) }
}

/** The sessions after the connection of `session` has ended. */
export function ended(sessions: Sessions, session: string): Sessions {
  if (session === sessions.current) return { ...sessions, helloAt: Infinity }
  const others = [...sessions.former].filter(([id]) => id !== session)
  return { ...sessions, former: new Map([...others, [session, Infinity] as const].slice(-FORMER_SESSIONS)) }
}
