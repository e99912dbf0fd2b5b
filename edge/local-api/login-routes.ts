import type { Context, Hono } from 'hono'
import { getCookie } from 'hono/cookie'
import { z } from 'zod'
import type { Log } from '../../protocol/model/log.ts'
import { Refusals } from '../../protocol/model/refusals.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import { bodyOf } from './bodies.ts'
import { LocalError } from './local-error.ts'
import { COOKIE, cookieHeader, isSameSite, sessionOf, tokenCheck } from './token.ts'

export interface LoginOptions {
  /** Of every path below `/api`: as a bearer token, or in the cookie that `/api/login` gives for it. */
  token: string
  clock: Clock
  log: Log
  /** Where a request comes from. */
  addressOf: (c: Context) => string
}

const Login = z.strictObject({ token: z.string().max(200) })

/** How long a login lasts, in seconds: a technician's shift. */
const LOGIN_S = 12 * 3600

/** Login and logout; every route below `/api` that is added after them takes the token, or the login's cookie. */
export function loginRoutes(app: Hono, options: LoginOptions): void {
  const refusals = new Refusals(['local_token'], options)
  const isToken = tokenCheck(options.token)
  const isSession = tokenCheck(sessionOf(options.token))

  const refuse = (c: Context): never => {
    refusals.note('local_token', options.addressOf(c), { path: c.req.path })
    throw new LocalError('authentication_required')
  }
  app.post('/api/login', async (c) => {
    if (!isSameSite(c.req.raw.headers)) return refuse(c)
    const { token } = await bodyOf(c, Login)
    if (!isToken(token)) return refuse(c)
    c.header('Set-Cookie', cookieHeader(sessionOf(options.token), LOGIN_S, isTls(c)))
    return c.json({ ok: true })
  })
  app.post('/api/logout', (c) => {
    c.header('Set-Cookie', cookieHeader('', 0, isTls(c)))
    return c.json({ ok: true })
  })
  app.use('/api/*', async (c, next) => {
    const bearer = /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1]
    const session = getCookie(c, COOKIE)
    if (bearer !== undefined && isToken(bearer)) return next()
    // A browser sends the cookie by itself, also where another site's page asks it to.
    if (session !== undefined && isSession(session) && isSameSite(c.req.raw.headers)) return next()
    if (c.req.header('authorization') !== undefined || session !== undefined) refuse(c)
    c.header('WWW-Authenticate', 'Bearer realm="larder-hub"')
    throw new LocalError('authentication_required')
  })
}

const isTls = (c: Context): boolean => new URL(c.req.url).protocol === 'https:'
