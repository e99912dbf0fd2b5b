import { z } from 'zod'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import { digestOf } from './token.ts'

/** A login at the hub's page. The hub stores only digests, so a reader of the file cannot use a session. */
const Session = z.object({
  digest: z.string(),
  /** Digest of the token that opened the session; the session ends with the token. */
  credential: z.string(),
  actor: LocalActor,
  expiresAt: z.number(),
})
type Session = z.infer<typeof Session>

/** The file of the open sessions, so that a restart of the service ends none. */
export interface SessionFile {
  read(): string | undefined
  /** May fail on a full disk; the sessions then last until the next restart. */
  write(text: string): void
}

export interface OpenSession {
  credential: string
  actor: LocalActor
}

const VALUE_BYTES = 32
/** A clock that is corrected by less ends no session. */
const CORRECTION_MS = 3_600_000

/** The open sessions of the hub's page. A logout ends a session here, not only in the browser. */
export class Sessions {
  readonly #runtime: Runtime
  readonly #lifetimeMs: number
  readonly #most: number
  readonly #file: SessionFile
  #open: Session[]

  constructor(
    { runtime, file }: { runtime: Runtime; file: SessionFile },
    { lifetimeMs, most }: { lifetimeMs: number; most: number },
  ) {
    this.#runtime = runtime
    this.#file = file
    this.#lifetimeMs = lifetimeMs
    this.#most = most
    this.#open = parsed(file.read())
  }

  /** Opens a session and returns its value for the cookie. If there are too many sessions, the oldest one ends. */
  begin({ credential, actor }: OpenSession): string {
    const value = Buffer.from(this.#runtime.random.bytes(VALUE_BYTES)).toString('base64url')
    const now = this.#runtime.clock.now()
    const session = { digest: digestOf(value), credential, actor, expiresAt: now + this.#lifetimeMs }
    this.#change([...this.#open.filter((each) => this.#isOpen(each)), session].slice(-this.#most))
    return value
  }

  /** The clock may have been ahead when the session began: its end is then further away than its lifetime. */
  #isOpen({ expiresAt }: Session): boolean {
    const leftMs = expiresAt - this.#runtime.clock.now()
    return leftMs > 0 && leftMs <= this.#lifetimeMs + CORRECTION_MS
  }

  /** The session of a cookie's value; undefined if it has ended. */
  find(value: string): OpenSession | undefined {
    const digest = digestOf(value)
    const session = this.#open.find((each) => each.digest === digest)
    return session && this.#isOpen(session) ? session : undefined
  }

  end(value: string): void {
    const digest = digestOf(value)
    if (this.#open.some((each) => each.digest === digest))
      this.#change(this.#open.filter((each) => each.digest !== digest))
  }

  #change(open: Session[]): void {
    this.#open = open
    this.#file.write(JSON.stringify(open))
  }
}

/** A damaged file ends all sessions: people log in again. */
function parsed(text: string | undefined): Session[] {
  if (text === undefined) return []
  try {
    return z.array(Session).parse(JSON.parse(text))
  } catch {
    return []
  }
}
