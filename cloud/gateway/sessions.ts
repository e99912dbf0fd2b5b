/** The sessions of a hub that this process knows of. */
export interface Sessions {
  current: string | null
  /**
   * The monotonic clock of the hub in the session's latest hello; -Infinity where another process answered it, Infinity where
   * the connection has ended: nothing that still comes of it is said by a hub that is there.
   */
  helloAt: number
  /**
   * The same of those that came before, the latest last. What of them is still on its way is late, but for a hello that is
   * later than all that were heard: what was taken for a newer session may have been the last word of an ended one, held up
   * on its way. Only the hub that is there goes on saying hello.
   */
  former: ReadonlyMap<string, number>
}

export const noSessions: Sessions = { current: null, helloAt: -Infinity, former: new Map() }

/** So many former sessions are remembered. */
const FORMER_SESSIONS = 8

const latestHello = ({ current, helloAt, former }: Sessions, session: string): number =>
  session === current ? helloAt : (former.get(session) ?? -Infinity)

/** Whether a hello comes too late: a later one of its session has been heard, or its connection has ended. */
export const isLate = (sessions: Sessions, session: string, monotonic: number): boolean =>
  monotonic <= latestHello(sessions, session)

/** The sessions after a hello of `session`; after a heartbeat of one that another process has welcomed. */
export function entered(sessions: Sessions, session: string, monotonic: number): Sessions {
  // Its connection may have ended while the hello was being answered.
  const helloAt = Math.max(monotonic, latestHello(sessions, session))
  const { current, former } = sessions
  const left = current === null ? [] : [[current, sessions.helloAt] as const]
  const others = [...former, ...left].filter(([id]) => id !== session)
  return { current: session, helloAt, former: new Map(others.slice(-FORMER_SESSIONS)) }
}

/** The sessions when the connection of `session` has ended. */
export function ended(sessions: Sessions, session: string): Sessions {
  if (session === sessions.current) return { ...sessions, helloAt: Infinity }
  const others = [...sessions.former].filter(([id]) => id !== session)
  return { ...sessions, former: new Map([...others, [session, Infinity] as const].slice(-FORMER_SESSIONS)) }
}
