import type { Socket } from 'node:net'
import type { AuthContext, Connection, ServerChannel, Session } from 'ssh2'
import {
  COMMAND_USAGE,
  exitCodeOf,
  MANAGEMENT_USER,
  MAX_COMMAND_LENGTH,
  parseCommand,
  REFUSED,
  type ManagementAnswer,
  type ManagementCommand,
} from '../../protocol/management/command.ts'
import type { Log } from '../../protocol/model/log.ts'
import { every, type Cancel, type Clock } from '../../protocol/model/runtime.ts'
import { authorize, type AuthorizedKey } from './authorized-keys.ts'
import type { Crowd } from './drop-chance.ts'

/** Limits for unauthenticated and logged-in callers of the management service. */
export interface ManagementLimits {
  /** Connections without a login: in total, and from one address. */
  unauthenticated: Crowd
  unauthenticatedOfNetwork: Crowd
  /** From the first byte to the end of the key exchange. */
  exchangeMs: number
  /** Connections that have logged in. */
  callers: number
  /** From the first byte to the login. */
  loginMs: number
  /** Refused login attempts on one connection. */
  attempts: number
  /** The connection of a caller without a command ends after this. */
  idleMs: number
  /** The maximum lifetime of a connection. */
  connectionMs: number
  /** Commands on one connection. */
  sessions: number
  /** Interval of checks of a connection's key: if the key was removed, its connections end. */
  recheckMs: number
}

export const defaultLimits: ManagementLimits = {
  unauthenticated: { start: 64, full: 128 },
  unauthenticatedOfNetwork: { start: 16, full: 48 },
  exchangeMs: 3000,
  callers: 8,
  loginMs: 10_000,
  attempts: 7,
  idleMs: 10_000,
  connectionMs: 180_000,
  sessions: 8,
  recheckMs: 2000,
}

export type Execute = (command: ManagementCommand, isWaiting: () => boolean) => Promise<ManagementAnswer>

export interface ConnectionOptions {
  connection: Connection
  socket: Socket
  /** Read for each attempt: a key that was removed from the file is invalid at once. */
  authorizedKeys: () => readonly AuthorizedKey[]
  execute: Execute
  /** Whether one more caller may log in. */
  admits: () => boolean
  /** Called at the end of the key exchange. */
  onExchanged: () => void
  onLogin: () => void
  limits: ManagementLimits
  clock: Clock
  log: Log
}

/** Serves one SSH connection from its first byte: login by public key, then sessions, within the limits. */
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
    // Every client starts with `none`, to learn the methods.
    if (attempt.method !== 'none')
      log.warn({ user: attempt.username, method: attempt.method }, 'login refused')
    attempt.reject(['publickey'])
    if (++refused >= limits.attempts) {
      log.warn({}, 'too many attempts')
      leave()
    }
  })
  connection.once('handshake', () => options.onExchanged())
  /** Ends the connection if its key is no longer authorized. */
  function isStillAuthorized(): boolean {
    const own = login
    if (own === undefined || options.authorizedKeys().some(({ wire }) => wire.equals(own.wire))) return true
    log.warn({ key: own.fingerprint, comment: own.comment }, 'the key of an open connection was removed')
    leave()
    return false
  }

  connection.once('ready', () => {
    options.onLogin()
    const cancel = every(clock, limits.recheckMs, () => void isStillAuthorized())
    socket.once('close', cancel)
    log.info({ key: login?.fingerprint, comment: login?.comment }, 'logged in')
    idle()
  })
  connection.on('session', (accept, reject) => {
    if (++sessions > limits.sessions || !isStillAuthorized()) return reject()
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

/** The key of an attempt that may continue. */
function judge(attempt: AuthContext, keys: () => readonly AuthorizedKey[]): AuthorizedKey | undefined {
  if (attempt.method !== 'publickey' || attempt.username !== MANAGEMENT_USER) return undefined
  return authorize(keys(), attempt)
}

/**
 * Serves one session channel: a command of the fixed set, or a message with the list of commands. Requests
 * for a terminal, variables, an agent, X11, sftp or another subsystem are refused by the library, because
 * they have no listener.
 */
function serveSession(session: Session, execute: Execute, log: Log): void {
  session.on('exec', (accept, _reject, { command: line }) => {
    const channel = accept()
    const command = parseCommand(line)
    if (command) void run(channel, command)
    else refuse(channel, { command: line.slice(0, MAX_COMMAND_LENGTH) })
  })
  session.on('shell', (accept) => refuse(accept(), { shell: true }))

  function refuse(channel: ServerChannel, asked: object): void {
    log.warn(asked, 'refused: not a command of the set')
    channel.stderr.write(`larder: not allowed. There is no shell here, only: ${COMMAND_USAGE}\n`)
    finish(channel, REFUSED)
  }

  async function run(channel: ServerChannel, command: ManagementCommand): Promise<void> {
    let isOpen = true
    channel.once('close', () => (isOpen = false))
    // Input of the caller is discarded.
    channel.resume()
    log.info({ command }, 'command')
    try {
      const answer = await execute(command, () => isOpen)
      log.info({ command, answer, isOpen }, answer.ok ? 'command done' : 'command failed')
      channel.write(`${JSON.stringify(answer)}\n`)
      finish(channel, exitCodeOf(answer))
    } catch (error) {
      log.error({ err: error, command }, 'command failed')
      channel.stderr.write('larder: the command failed; the log of the management service has the reason\n')
      finish(channel, 1)
    }
  }
}

function finish(channel: ServerChannel, exitCode: number): void {
  channel.exit(exitCode)
  channel.end()
}

/** The same log, with fields on every record. */
export function childLog(log: Log, fields: object): Log {
  const at = (level: keyof Log) => (own: object, message: string) =>
    log[level]({ ...fields, ...own }, message)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
