import type { Socket } from 'node:net'
import type { AuthContext, Connection } from 'ssh2'
import { MANAGEMENT_USER } from '../../protocol/management/command.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import { authorize, type AuthorizedKey } from './authorized-keys.ts'
import type { ManagementLimits } from './limits.ts'
import { serveSession, type Execute } from './session.ts'

export interface ConnectionOptions {
  connection: Connection
  socket: Socket
  /** Read anew for each attempt: a key that was taken out of the file is out at once. */
  authorizedKeys: () => readonly AuthorizedKey[]
  execute: Execute
  /** Whether one more may log in. */
  admits: () => boolean
  onLogin: () => void
  limits: ManagementLimits
  clock: Clock
  log: Log
}

/** Serves one SSH connection from its first line on: login by public key, then sessions, within the limits. */
export function serveConnection(options: ConnectionOptions): void {
  const { connection, socket, limits, clock, log } = options
  let refused = 0
  let sessions = 0
  let running = 0
  let cancelIdle: Cancel = () => {}
  let login: AuthorizedKey | undefined

  function idle(): void {
    cancelIdle()
    if (running === 0 && !socket.destroyed) cancelIdle = clock.after(limits.idleMs, leave)
  }

  function leave(): void {
    connection.end()
    socket.destroySoon()
  }

  connection.on('authentication', (attempt) => {
    const key = judge(attempt, options.authorizedKeys)
    if (key && !options.admits()) {
      log.warn({ key: key.fingerprint }, 'too many callers')
      return leave()
    }
    if (key) {
      if (attempt.method === 'publickey' && attempt.signature) login = key
      return attempt.accept()
    }
    // Every client begins with `none`, to learn what there is.
    if (attempt.method !== 'none')
      log.warn({ user: attempt.username, method: attempt.method }, 'login refused')
    attempt.reject(['publickey'])
    if (++refused >= limits.attempts) {
      log.warn({}, 'too many attempts')
      leave()
    }
  })
  connection.once('ready', () => {
    options.onLogin()
    log.info({ key: login?.fingerprint, comment: login?.comment }, 'logged in')
    idle()
  })
  connection.on('session', (accept, reject) => {
    if (++sessions > limits.sessions) return reject()
    const caller = { key: login?.fingerprint, comment: login?.comment }
    serveSession(accept(), count, childLog(log, caller))
  })
  connection.on('error', (error) => log.debug({ error: error.message }, 'the connection failed'))
  socket.once('close', () => cancelIdle())

  const count: Execute = async (command, isWaiting) => {
    running++
    cancelIdle()
    try {
      return await options.execute(command, isWaiting)
    } finally {
      running--
      idle()
    }
  }
}

/** The key of an attempt that may go on. */
function judge(attempt: AuthContext, keys: () => readonly AuthorizedKey[]): AuthorizedKey | undefined {
  if (attempt.method !== 'publickey' || attempt.username !== MANAGEMENT_USER) return undefined
  return authorize(keys(), attempt)
}

/** The same log, with fields on every record. */
export function childLog(log: Log, fields: object): Log {
  const at = (level: keyof Log) => (own: object, message: string) =>
    log[level]({ ...fields, ...own }, message)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
