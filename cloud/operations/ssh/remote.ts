import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import ssh2 from 'ssh2'
import {
  exitCodeOf,
  formatCommand,
  MANAGEMENT_USER,
  ManagementAnswer,
  type ManagementCommand,
} from '../../../protocol/management/command.ts'
import { newKey } from '../../../protocol/management/new-key.ts'
import { fingerprintOf, sshAlgorithms } from '../../../protocol/management/ssh.ts'
import { bareHost } from '../../../protocol/model/address.ts'
import { type Log, silentLog } from '../../../protocol/model/log.ts'
import type { Cancel, Clock } from '../../../protocol/model/runtime.ts'
import { storeFirst, readStored, type Say } from '../../platform/settings/stored-file.ts'
import { UsageError } from '../../platform/settings/usage-error.ts'
import type { ManagementAddress } from './addresses.ts'

export type RemoteOutcome =
  | { kind: 'answered'; answer: ManagementAnswer }
  /**
   * `isSent`: the command may have been executed nevertheless. The caller sees `error`, so it contains
   * nothing internal.
   */
  | { kind: 'failed'; failure: ExecFailure | 'command_failed'; error: string; isSent: boolean }

/** Executes a command at a hub's management service. */
export type Remote = (address: ManagementAddress, command: ManagementCommand) => Promise<RemoteOutcome>

interface RemoteOptions {
  /**
   * The cloud's private keys, read for each command, in the order in which they are tried. Throws if there is
   * none.
   */
  readKey: () => string | readonly string[]
  exec: (request: ExecRequest) => Promise<ExecOutcome>
  connectMs: number
  commandMs: number
  log: Log
}

export const createRemote =
  ({ readKey, exec, connectMs, commandMs, log }: RemoteOptions): Remote =>
  async (address, command) => {
    let privateKey: string | readonly string[]
    try {
      privateKey = readKey()
    } catch (error) {
      // Only the operator may learn where the key is stored; the caller gets a general error.
      log.error({ err: error }, 'the key for management services cannot be read')
      return {
        kind: 'failed',
        failure: 'authentication_error',
        error: 'the cloud has no key for management services',
        isSent: false,
      }
    }
    const request = { address, privateKey, command: formatCommand(command), connectMs, commandMs }
    return readOutcome(await exec(request))
  }

function readOutcome(outcome: ExecOutcome): RemoteOutcome {
  if (outcome.kind === 'failed') return outcome
  const answer = parseAnswer(outcome.stdout)
  if (answer && exitCodeOf(answer) === outcome.code) return { kind: 'answered', answer }
  const output = (outcome.stderr || outcome.stdout).trim().slice(0, 300)
  return {
    kind: 'failed',
    failure: 'command_failed',
    error: `the management service ended with status ${outcome.code}: ${output}`,
    isSent: true,
  }
}

function parseAnswer(text: string): ManagementAnswer | undefined {
  try {
    return ManagementAnswer.parse(JSON.parse(text))
  } catch {
    // Another program, or another version of the service: its exit status and output are the only
    // information.
    return undefined
  }
}

/** The reason why a command did not complete (`error_type`). */
type ExecFailure = 'connection_error' | 'authentication_error' | 'timeout'

type ExecOutcome =
  | { kind: 'exited'; code: number; stdout: string; stderr: string }
  /** `isSent`: the command was sent, and may have been executed. */
  | { kind: 'failed'; failure: ExecFailure; error: string; isSent: boolean }

export interface ExecRequest {
  address: ManagementAddress
  /** In OpenSSH's format; several are tried in turn. */
  privateKey: string | readonly string[]
  command: string
  /** From the first packet to the login, in milliseconds. */
  connectMs: number
  /** From the login to the exit status, in milliseconds. */
  commandMs: number
}

const MAX_OUTPUT = 64 * 1024

const algorithms: ssh2.Algorithms = {
  kex: [...sshAlgorithms.kex],
  cipher: [...sshAlgorithms.cipher],
  hmac: [...sshAlgorithms.hmac],
  compress: [...sshAlgorithms.compress],
  serverHostKey: [
    'ssh-ed25519',
    'ecdsa-sha2-nistp256',
    'ecdsa-sha2-nistp384',
    'ecdsa-sha2-nistp521',
    'rsa-sha2-512',
    'rsa-sha2-256',
  ],
}

/** Omits the message, which may contain addresses. */
const reasonOf = ({ code, level }: { code?: string; level?: string }): string => code ?? level ?? 'unknown'

/** Runs one command over SSH. It connects only to a host with the pinned key. Never rejects. */
export function sshExec(request: ExecRequest, clock: Clock, log: Log = silentLog): Promise<ExecOutcome> {
  const { address, connectMs, commandMs } = request
  const client = new ssh2.Client()
  const keys = typeof request.privateKey === 'string' ? [request.privateKey] : request.privateKey
  return new Promise((resolve) => {
    let isSent = false
    let isForeign = false
    let cancel: Cancel = clock.after(connectMs, () =>
      fail('timeout', `no login at the management service within ${connectMs} ms`),
    )

    const settle = (outcome: ExecOutcome): void => {
      cancel()
      resolve(outcome)
      client.end()
      client.destroy()
    }
    const fail = (failure: ExecFailure, error: string): void =>
      settle({ kind: 'failed', failure, error, isSent })

    client.on('error', (error: Error & { level?: string; code?: string }) => {
      if (isForeign) fail('authentication_error', 'the host key is not the one that is pinned for this hub')
      else if (error.level === 'client-authentication')
        fail('authentication_error', 'the management service does not let the cloud’s key in')
      else fail('connection_error', `the connection failed: ${reasonOf(error)}`)
    })
    client.on('close', () => fail('connection_error', 'the management service closed the connection'))
    client.on('ready', () => {
      cancel()
      cancel = clock.after(commandMs, () => fail('timeout', `no answer within ${commandMs} ms`))
      isSent = true
      client.exec(request.command, (error, channel) => {
        if (error) return fail('connection_error', 'the command was not taken')
        read(channel)
      })
    })

    function read(channel: ssh2.ClientChannel): void {
      const stdout = collect(channel, tooLong)
      const stderr = collect(channel.stderr, tooLong)
      let code: number | null = null
      channel.on('exit', (status: number | null) => (code = status))
      channel.on('close', () => {
        if (code === null) return fail('connection_error', 'the command ended without an exit status')
        settle({ kind: 'exited', code, stdout: stdout(), stderr: stderr() })
      })
    }
    const tooLong = (): void => fail('connection_error', 'the management service answers without end')

    try {
      client.connect({
        host: bareHost(address.host),
        port: address.port,
        username: MANAGEMENT_USER,
        authHandler: keys.map((key) => ({ type: 'publickey', username: MANAGEMENT_USER, key })),
        hostVerifier: (key: Buffer) => {
          isForeign = fingerprintOf(key) !== address.hostKey
          return !isForeign
        },
        // This function measures the time itself, with the given clock.
        readyTimeout: 0,
        algorithms,
      })
    } catch (error) {
      log.error({ err: error }, 'the key for management services cannot be used')
      fail('authentication_error', 'the cloud’s key cannot be used')
    }
  })
}

/** Collects a stream's output; returns a function that reads it. */
function collect(stream: NodeJS.ReadableStream, tooLong: () => void): () => string {
  const chunks: Buffer[] = []
  let length = 0
  stream.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > MAX_OUTPUT) return tooLong()
    chunks.push(chunk)
  })
  return () => Buffer.concat(chunks).toString('utf8')
}

interface ClientKey {
  /** In OpenSSH's format. */
  privateKey: string
  /** As a line of `authorized_keys`. */
  publicKey: string
}

/** Reads the cloud's key from the file at `path`; throws if the file is missing or contains no key. */
export function readClientKey(path: string): ClientKey {
  const privateKey = readFileSync(path, 'utf8')
  const key = ssh2.utils.parseKey(privateKey)
  if (key instanceof Error) throw new Error(`${path} is no private key (${key.message})`)
  if (!key.isPrivateKey()) throw new Error(`${path} is no private key`)
  const wire = key.getPublicSSH().toString('base64')
  return { privateKey, publicKey: `${key.type} ${wire} larder-cloud` }
}

/**
 * The path of the former key during a rotation: management services that lack the new key still accept it.
 */
const formerPath = (path: string): string => `${path}.former`

/** The keys that management services may accept: the present one and, during a rotation, the former one. */
export function readClientKeys(path: string): string[] {
  const former = existsSync(formerPath(path)) ? [readClientKey(formerPath(path)).privateKey] : []
  return [readClientKey(path).privateKey, ...former]
}

/** Makes a new key and stores the former one next to it. Throws if an earlier rotation has not ended. */
export function rotateClientKey(path: string, say: Say): { key: ClientKey; former: ClientKey } {
  if (existsSync(formerPath(path)))
    throw new UsageError(`${formerPath(path)} exists: end the former rotation first (hubs end-key-rotation)`)
  const former = readClientKey(path)
  renameSync(path, formerPath(path))
  return { key: ensureClientKey(path, say), former }
}

/** Ends a rotation: the former key is removed. False if there is none. */
export function endRotation(path: string): boolean {
  if (!existsSync(formerPath(path))) return false
  rmSync(formerPath(path))
  return true
}

/** Reads the cloud's key; makes it if there is none. */
export function ensureClientKey(path: string, say: Say): ClientKey {
  if (readStored(path) === undefined) storeFirst(path, newKey('larder-cloud').privateKey, say)
  return readClientKey(path)
}
