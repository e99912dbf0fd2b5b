import { connect, type Socket } from 'node:net'
import ssh2, { type ClientChannel } from 'ssh2'
import { parseAuthorizedKeys } from '../../../edge/management/authorized-keys.ts'
import { defaultLimits, type Execute, type ManagementLimits } from '../../../edge/management/connection.ts'
import { SshServer } from '../../../edge/management/ssh-server.ts'
import {
  type ManagementAnswer,
  MANAGEMENT_USER,
  type ManagementCommand,
} from '../../../protocol/management/command.ts'
import { fingerprintOf } from '../../../protocol/management/ssh.ts'
import { newKey } from '../../../protocol/management/new-key.ts'
import type { Log } from '../../../protocol/model/log.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'

export const answered: ManagementAnswer = {
  ok: true,
  hub_id: 1,
  disabled_bins: [2],
  service: { state: 'running', pid: 7 },
  stop_result: null,
  start_result: null,
}

/** The management service's SSH server with recorded commands. */
export interface SshRig {
  port: number
  /** `SHA256:…` */
  hostKey: string
  /** An authorized private key. */
  key: string
  commands: ManagementCommand[]
  /** Log lines for the operator. */
  logged: { level: string; message: string; fields: Record<string, unknown> }[]
  /** Replaces the text of the file of authorized keys. */
  authorize(text: string): void
  close(): void
}

export interface RigOptions {
  limits?: Partial<ManagementLimits>
  execute?: Execute
  /** A fixed port instead of a random one. */
  port?: number
}

export async function openRig({ limits, execute, port = 0 }: RigOptions = {}): Promise<SshRig> {
  const host = newKey('host')
  const own = newKey('caller')
  const commands: ManagementCommand[] = []
  const logged: SshRig['logged'] = []
  let authorized = own.publicKey
  const note = (level: string) => (fields: object, message: string) =>
    void logged.push({ level, message, fields: { ...fields } })
  const log: Log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
  const server = new SshServer({
    hostKey: host.privateKey,
    authorizedKeys: () => parseAuthorizedKeys(authorized).keys,
    execute: (command, isWaiting) => {
      commands.push(command)
      return execute?.(command, isWaiting) ?? Promise.resolve(answered)
    },
    limits: { ...defaultLimits, ...limits },
    runtime: systemRuntime(),
    log,
  })
  const hostKey = ssh2.utils.parseKey(host.publicKey)
  if (hostKey instanceof Error) throw hostKey
  return {
    port: await server.listen('127.0.0.1', port),
    hostKey: fingerprintOf(hostKey.getPublicSSH()),
    key: own.privateKey,
    commands,
    logged,
    authorize: (text) => void (authorized = text),
    close: () => server.close(),
  }
}

/** A client that is logged in; rejects if the login is refused. */
export function login(rig: SshRig, options: Partial<ssh2.ConnectConfig> = {}): Promise<ssh2.Client> {
  return new Promise((resolve, reject) => {
    const client = new ssh2.Client()
    client.once('ready', () => resolve(client))
    client.on('error', reject)
    client.once('close', () => reject(new Error('closed')))
    client.connect({
      host: '127.0.0.1',
      port: rig.port,
      username: MANAGEMENT_USER,
      privateKey: rig.key,
      ...options,
    })
  })
}

export interface Ran {
  code: number | null
  stdout: string
  stderr: string
}

/** Reads the output of a channel until it closes. */
export function readChannel(channel: ClientChannel): Promise<Ran> {
  return new Promise((resolve) => {
    const ran: Ran = { code: null, stdout: '', stderr: '' }
    channel.on('data', (chunk: Buffer) => (ran.stdout += String(chunk)))
    channel.stderr.on('data', (chunk: Buffer) => (ran.stderr += String(chunk)))
    channel.on('exit', (code: number | null) => (ran.code = code))
    channel.on('close', () => resolve(ran))
  })
}

export function exec(client: ssh2.Client, command: string): Promise<Ran> {
  return new Promise((resolve, reject) => {
    client.exec(command, (error, channel) => {
      if (error) reject(error)
      else void readChannel(channel).then(resolve)
    })
  })
}

/** A raw connection, and the time of its end. */
export function dial(port: number, from = '127.0.0.1'): { socket: Socket; closed: Promise<void> } {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from })
  socket.on('error', () => {})
  socket.resume()
  return { socket, closed: new Promise((resolve) => socket.once('close', () => resolve())) }
}
