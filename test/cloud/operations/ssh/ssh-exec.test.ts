import { createServer } from 'node:net'
import ssh2 from 'ssh2'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createRemote, type ExecRequest, sshExec } from '../../../../cloud/operations/ssh/remote.ts'
import { newKey } from '../../../../protocol/management/new-key.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { answered, openRig, type RigOptions, type SshRig } from '../../../edge/management/ssh-rig.ts'

const { clock } = systemRuntime()
let rig: SshRig
beforeEach(async () => void (rig = await openRig()))
afterEach(() => rig.close())

async function reopen(options: RigOptions): Promise<void> {
  rig.close()
  rig = await openRig(options)
}

const run = (given: Partial<ExecRequest> = {}) =>
  sshExec(
    {
      address: { host: '127.0.0.1', port: rig.port, hostKey: rig.hostKey },
      privateKey: rig.key,
      command: 'status',
      connectMs: 5000,
      commandMs: 5000,
      ...given,
    },
    clock,
  )
const failed = (failure: string, isSent: boolean) => ({ kind: 'failed', failure, isSent })

test('the error about an unreachable host does not name the host', async () => {
  const gone = { host: '127.0.0.1', port: 1, hostKey: rig.hostKey }
  expect(await run({ address: gone })).toEqual({
    ...failed('connection_error', false),
    error: 'the connection failed: ECONNREFUSED',
  })
})

test('a command is executed, and its exit status and output are returned', async () => {
  expect(await run()).toEqual({
    kind: 'exited',
    code: 0,
    stdout: `${JSON.stringify(answered)}\n`,
    stderr: '',
  })
  expect(await run({ command: 'id' })).toMatchObject({ kind: 'exited', code: 127, stdout: '' })
})

describe('commands that are not sent', () => {
  test('no command is sent to a host with another key than the pinned one', async () => {
    const before = rig.hostKey
    await reopen({ port: rig.port })
    expect(rig.hostKey).not.toBe(before)
    const address = { host: '127.0.0.1', port: rig.port, hostKey: before }
    expect(await run({ address })).toMatchObject({
      ...failed('authentication_error', false),
      error: expect.stringContaining('host key') as string,
    })
    expect(rig.commands).toEqual([])
    expect(rig.logged.map(({ message }) => message)).not.toContain('logged in')
  })

  test('no command is sent to a host that refuses the cloud’s key', async () => {
    expect(await run({ privateKey: newKey('x').privateKey })).toMatchObject(
      failed('authentication_error', false),
    )
    expect(await run({ privateKey: 'no key at all' })).toMatchObject(failed('authentication_error', false))
    expect(rig.commands).toEqual([])
  })

  test('no command is sent if the port is closed, or is not an SSH service', async () => {
    const { port } = rig
    rig.close()
    const address = { host: '127.0.0.1', port, hostKey: rig.hostKey }
    expect(await run({ address })).toMatchObject(failed('connection_error', false))
    expect(await run({ address: { ...address, host: 'nowhere.invalid' } })).toMatchObject(
      failed('connection_error', false),
    )
    const web = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
    const at = (web.address() as { port: number }).port
    expect(await run({ address: { ...address, port: at } })).toMatchObject(failed('connection_error', false))
    web.close()
  })

  test('no command is sent to a host that accepts the connection and stays silent', async () => {
    const silent = createServer(() => {})
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    const address = { host: '127.0.0.1', port, hostKey: rig.hostKey }
    expect(await run({ address, connectMs: 200 })).toMatchObject(failed('timeout', false))
    silent.close()
  })
})

describe('commands with unknown outcome', () => {
  test('a command without an answer in time has an unknown outcome', async () => {
    await reopen({ execute: () => new Promise(() => {}) })
    expect(await run({ commandMs: 200 })).toMatchObject(failed('timeout', true))
    expect(rig.commands).toHaveLength(1)
  })

  test('a command on a connection that ends early has an unknown outcome', async () => {
    await reopen({
      execute: () => {
        rig.close()
        return new Promise(() => {})
      },
    })
    expect(await run()).toMatchObject(failed('connection_error', true))
  })

  test('a command with an endless answer has an unknown outcome', async () => {
    const host = newKey('chatty')
    const key = ssh2.utils.parseKey(host.publicKey)
    if (key instanceof Error) throw key
    const server = new ssh2.Server({ hostKeys: [host.privateKey] }, (connection) => {
      connection.on('error', () => {})
      connection.on('authentication', (attempt) => attempt.accept())
      connection.on('session', (accept) =>
        accept().on('exec', (take) => {
          const channel = take()
          const talk = (): void => {
            while (channel.write('x'.repeat(10_000)));
          }
          channel.on('drain', talk)
          talk()
        }),
      )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const { fingerprintOf } = await import('../../../../protocol/management/ssh.ts')
    const address = { host: '127.0.0.1', port, hostKey: fingerprintOf(key.getPublicSSH()) }
    expect(await run({ address })).toMatchObject(failed('connection_error', true))
    server.close()
  })
})

test('a hub with either key accepts the cloud during a rotation', async () => {
  const fresh = newKey('fresh')
  const privateKey = [fresh.privateKey, rig.key]
  expect(await run({ privateKey })).toMatchObject({ kind: 'exited', code: 0 })
  rig.authorize(fresh.publicKey)
  expect(await run({ privateKey })).toMatchObject({ kind: 'exited', code: 0 })
  rig.authorize(newKey('other').publicKey)
  expect(await run({ privateKey })).toMatchObject(failed('authentication_error', false))
})

describe('results of management commands', () => {
  const logged: object[] = []
  const remote = (readKey: () => string) =>
    createRemote({
      readKey,
      exec: (request) => sshExec(request, clock),
      connectMs: 5000,
      commandMs: 5000,
      log: { ...silentLog, error: (fields) => void logged.push(fields) },
    })
  const address = () => ({ host: '127.0.0.1', port: rig.port, hostKey: rig.hostKey })

  test('any answer of the management service is returned', async () => {
    expect(await remote(() => rig.key)(address(), { name: 'status' })).toEqual({
      kind: 'answered',
      answer: answered,
    })
    const no = {
      ok: false,
      hub_id: 1,
      error_type: 'validation_error',
      error: 'no such bin',
      stored: false,
      stop_result: null,
      start_result: null,
    } as const
    await reopen({ execute: () => Promise.resolve(no) })
    expect(await remote(() => rig.key)(address(), { name: 'enable-bin', bin: 9 })).toEqual({
      kind: 'answered',
      answer: no,
    })
  })

  test('an invalid answer is command_failed with an unknown outcome', async () => {
    await reopen({ execute: () => Promise.resolve({ hello: 'world' } as unknown as typeof answered) })
    expect(await remote(() => rig.key)(address(), { name: 'restart' })).toMatchObject(
      failed('command_failed', true),
    )
    await reopen({ execute: () => Promise.reject(new Error('x')) })
    expect(await remote(() => rig.key)(address(), { name: 'restart' })).toMatchObject(
      failed('command_failed', true),
    )
  })

  test('without a key no command is tried, and only the operator’s log has the path of the key', async () => {
    const error = new Error("ENOENT: no such file or directory, open '/srv/larder/management-key'")
    const missing = () => {
      throw error
    }
    expect(await remote(missing)(address(), { name: 'status' })).toEqual({
      ...failed('authentication_error', false),
      error: 'the cloud has no key for management services',
    })
    expect(logged).toEqual([{ err: error }])
    expect(rig.logged).toEqual([])
  })
})
