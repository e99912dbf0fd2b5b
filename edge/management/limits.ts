/** What one stranger, or one careless caller, can take of the management service. */
export interface ManagementLimits {
  /** Connections that have not logged in; of one more the oldest is ended, so that nobody can keep others out. */
  strangers: number
  /** Connections that have logged in. */
  callers: number
  /** From the first byte to the login. */
  loginMs: number
  /** Attempts that are refused on one connection. */
  attempts: number
  /** A caller without a command is ended after this. */
  idleMs: number
  /** No connection lives longer. */
  connectionMs: number
  /** Commands on one connection. */
  sessions: number
}

export const defaultLimits: ManagementLimits = {
  strangers: 16,
  callers: 8,
  loginMs: 10_000,
  attempts: 7,
  idleMs: 10_000,
  connectionMs: 180_000,
  sessions: 8,
}
