import type { Context, Hono, MiddlewareHandler } from 'hono'
import { getCookie } from 'hono/cookie'
import { z } from 'zod'
import type { Log } from '../../protocol/model/log.ts'
import { Refusals } from '../../protocol/model/refusals.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { storageSentence, storageText, type StorageFault } from '../../protocol/model/storage.ts'
import { PersonName, isPinOf, isSameName, noPinDigest } from '../../protocol/model/pin.ts'
import type { PersonAtHub } from '../../protocol/mqtt/cloud-entries.ts'
import type { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import { bodyOf } from './bodies.ts'
import { Guesses, type GuessLimits } from './guesses.ts'
import { LocalError } from './local-error.ts'
import { Sessions, type SessionFile } from './sessions.ts'
import { cookieHeader, cookieName, isSameSite, digestOf, isSameDigest } from './token.ts'
import { networkOf } from '../../protocol/model/network.ts'

export interface LoginOptions {
  /** The shared token for every path below `/api`: as a bearer token, or for the cookie of `/api/login`. */
  token: string
  /** People with a name and a PIN. */
  people: () => readonly PersonAtHub[]
  sessionFile: SessionFile
  /** Lifetime of a login. */
  sessionMs: number
  /** Maximum number of logins; a further one ends the oldest. */
  sessions: number
  guesses: GuessLimits
  /** Why the hub cannot use its storage; undefined if it works. The page shows it before the login. */
  storage?: () => StorageFault | undefined
  runtime: Runtime
  log: Log
  /** The address of a request's sender. */
  addressOf: (c: Context) => string
}

/** The routes' data about the caller. */
export interface LocalVariables {
  /** The acting person, for this log and the cloud's audit log. */
  actor: LocalActor
  /** Whether the caller may continue to read. */
  isAllowed: () => boolean
}
export type LocalApp = Hono<{ Variables: LocalVariables }>
export type LocalContext = Context<{ Variables: LocalVariables }>

const Secret = z.string().max(200)
const Login = z.union([
  z.strictObject({ name: PersonName, pin: Secret }),
  /** The name is not verified. */
  z.strictObject({ token: Secret, name: PersonName.optional() }),
])

/** The person's name in the hub's log. */
export const nameOf = ({ person }: LocalActor): string => person ?? 'shared token'

/** Adds login and logout. Every route below `/api` that is added later requires a token, or the login's cookie. */
export function loginRoutes(app: LocalApp, options: LoginOptions): void {
  const { runtime, log } = options
  const { clock } = runtime
  const refusals = new Refusals(['local_token'], { log, clock })
  const access = new LocalAccess(options)
  const { ofToken, ofPin } = delayedChecks(access, options)
  const sessions = new Sessions(
    { runtime, file: options.sessionFile },
    { lifetimeMs: options.sessionMs, most: options.sessions },
  )

  const refuse = (c: LocalContext): never => {
    refusals.note('local_token', options.addressOf(c), { path: c.req.path })
    throw new LocalError('authentication_required')
  }

  app.post('/api/login', async (c) => {
    if (!isSameSite(c.req.raw.headers)) return refuse(c)
    const body = await bodyOf(c, Login)
    const { name } = body
    const holder = 'pin' in body ? await ofPin(c, body.name, body.pin) : ofToken(c, body.token)
    if (holder === undefined) return refuse(c)
    const actor = { person: holder.person ?? name ?? null, shared_token: holder.person === null }
    const value = sessions.begin({ credential: holder.credential, actor })
    log.info({ by: nameOf(actor) }, 'a person logs in')
    c.header('Set-Cookie', cookieHeader(value, Math.floor(options.sessionMs / 1000), isTls(c)))
    return c.json({ ok: true })
  })
  app.post('/api/logout', (c) => {
    const value = getCookie(c, cookieName(isTls(c)))
    // A page of another site must not end the login.
    if (value !== undefined && isSameSite(c.req.raw.headers)) sessions.end(value)
    c.header('Set-Cookie', cookieHeader('', 0, isTls(c)))
    return c.json({ ok: true })
  })

  /** The open session of a cookie: it ends with its token. */
  const sessionOf = (value: string) => {
    const session = sessions.find(value)
    return session && access.isValid(session.credential) ? session : undefined
  }
  // A page calls it at its start: a 401 would appear as an error in the browser's log.
  app.get('/api/session', (c) => {
    const value = getCookie(c, cookieName(isTls(c)))
    const session = value !== undefined && isSameSite(c.req.raw.headers) ? sessionOf(value) : undefined
    const fault = options.storage?.()
    const storage = fault && { message: storageSentence(fault), remedy: storageText(fault.reason).remedy }
    const person = session?.actor.person ?? null
    return c.json({ logged_in: session !== undefined, person, ...(storage && { storage }) })
  })
  const authenticate: MiddlewareHandler<{ Variables: LocalVariables }> = async (c, next) => {
    const value = getCookie(c, cookieName(isTls(c)))
    const session = value === undefined ? undefined : sessionOf(value)
    // A browser sends the cookie automatically, also for requests from another site's page.
    if (session !== undefined && isSameSite(c.req.raw.headers)) {
      c.set('actor', session.actor)
      c.set('isAllowed', () => sessionOf(value!) !== undefined)
      return next()
    }
    const bearer = /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1]
    if (bearer !== undefined && ofToken(c, bearer)) {
      c.set('actor', { person: null, shared_token: true })
      c.set('isAllowed', () => true)
      return next()
    }
    // The cookie of an ended session does not count as a wrong token.
    if (c.req.header('authorization') !== undefined) refuse(c)
    c.header('WWW-Authenticate', 'Bearer realm="larder-hub"')
    throw new LocalError('authentication_required')
  }
  app.use('/api/*', authenticate)
}

/** Checks of tokens and PINs. After wrong ones the next one is checked only after a delay. */
function delayedChecks(access: LocalAccess, options: LoginOptions) {
  const guesses = new Guesses(options.runtime.clock, options.guesses)
  const delay = (c: LocalContext, delayMs: number): void => {
    if (delayMs === 0) return
    c.header('Retry-After', String(Math.ceil(delayMs / 1000)))
    throw new LocalError('too_many_attempts')
  }
  const ofToken = (c: LocalContext, token: string): Access | undefined => {
    const sender = { network: networkOf(options.addressOf(c)) }
    delay(c, guesses.delayOf(sender))
    const holder = access.ofToken(token)
    if (holder === undefined) guesses.count(sender)
    return holder
  }
  const ofPin = async (c: LocalContext, name: string, pin: string): Promise<Access | undefined> => {
    const sender = { network: networkOf(options.addressOf(c)), name }
    delay(c, guesses.delayOf(sender))
    if (access.isBusy(sender.network)) delay(c, 1000)
    // The check takes time. The attempt counts before it, so that concurrent attempts are delayed too.
    const succeed = guesses.count(sender)
    const holder = await access.ofPin(sender.network, name, pin)
    if (holder !== undefined) succeed()
    return holder
  }
  return { ofToken, ofPin }
}

const isTls = (c: Context): boolean => new URL(c.req.url).protocol === 'https:'

/** The holder of a credential. */
interface Access {
  /** Digest of the shared token, or of the person's stored PIN: a changed PIN is another credential. */
  credential: string
  /** Null for the shared token. */
  person: string | null
}

/** Number of PINs that wait for their check, of all networks and of one; further ones are refused. */
const PINS_WAITING = 32
const PINS_WAITING_PER_NETWORK = 4

/** Access to the hub's page: by the shared token (`LOCAL_TOKEN`), or by a person's name and PIN. */
class LocalAccess {
  readonly #shared: string
  readonly #people: () => readonly PersonAtHub[]
  /** Networks of the PINs that wait. */
  readonly #waiting: string[] = []
  #lastCheck: Promise<unknown> = Promise.resolve()

  constructor({ token, people }: { token: string; people: () => readonly PersonAtHub[] }) {
    this.#shared = digestOf(token)
    this.#people = people
  }

  /** The access of the shared token; undefined if the token is wrong. */
  ofToken(token: string): Access | undefined {
    const credential = digestOf(token)
    return isSameDigest(credential, this.#shared) ? { credential, person: null } : undefined
  }

  /** Whether too many PINs wait for their check, of all networks or of this one. */
  isBusy(network: string): boolean {
    const own = this.#waiting.filter((each) => each === network).length
    return own >= PINS_WAITING_PER_NETWORK || this.#waiting.length >= PINS_WAITING
  }

  /**
   * The access of a person; undefined if there is no such person, or if the PIN is wrong. One PIN is checked at a time:
   * the serial lines are read on the same few threads.
   */
  async ofPin(network: string, name: string, pin: string): Promise<Access | undefined> {
    this.#waiting.push(network)
    const check = this.#lastCheck.then(() => this.#checkPin(name, pin))
    this.#lastCheck = check.catch(() => {})
    try {
      return await check
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(network), 1)
    }
  }

  async #checkPin(name: string, pin: string): Promise<Access | undefined> {
    const person = this.#people().find((one) => isSameName(one.name, name))
    // An unknown name costs as much time as a wrong PIN.
    const isRight = await isPinOf(person?.pin_digest ?? noPinDigest, pin)
    return person && isRight ? accessOf(person) : undefined
  }

  /** Whether the credential of a session is still valid. */
  isValid(credential: string): boolean {
    return (
      isSameDigest(credential, this.#shared) ||
      this.#people().some((person) => isSameDigest(accessOf(person).credential, credential))
    )
  }
}

const accessOf = ({ name, pin_digest: digest }: PersonAtHub): Access => ({
  credential: digestOf(digest),
  person: name,
})
