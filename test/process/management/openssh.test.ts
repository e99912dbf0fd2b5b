import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, vi } from 'vitest'
import { ManagementAnswer } from '../../../protocol/management/command.ts'
import { newKey } from '../../../protocol/management/new-key.ts'
import { missing, service } from '../../support/services.ts'
import { commandOf } from '../../support/programs.ts'
import { freePorts } from '../../support/ports.ts'

/** OpenSSH's own clients against the real program. Refused calls need no running hub. */
let folder: string
let port: number
let program: ReturnType<typeof spawn>
const at = (name: string) => join(folder, name)

beforeAll(async () => {
  if (missing('ssh') !== undefined) return
  folder = mkdtempSync(join(tmpdir(), 'larder-openssh-'))
  ;[port] = (await freePorts(1)) as [number]
  for (const [name, options] of [
    ['ed25519', ['-t', 'ed25519']],
    ['ecdsa', ['-t', 'ecdsa', '-b', '384']],
    ['rsa', ['-t', 'rsa', '-b', '3072']],
    ['short', ['-t', 'rsa', '-b', '1024']],
    ['stranger', ['-t', 'ed25519']],
  ] as const)
    run('ssh-keygen', ['-q', '-N', '', '-f', at(name), ...options])
  const known = ['ed25519', 'ecdsa', 'rsa', 'short'].map((name) => readFileSync(at(`${name}.pub`), 'utf8'))
  writeFileSync(at('authorized_keys'), known.join(''))
  const controllers = [{ id: 'bins', port: at('no-port'), devices: [{ kind: 'bin', number: 1 }] }]
  writeFileSync(
    at('hardware.json'),
    JSON.stringify({ hubId: 7, controllers, gpio: { chipLabel: 'none', lines: [] } }),
  )
  await start()
  writeFileSync(at('known_hosts'), run('ssh-keyscan', ['-p', String(port), '127.0.0.1']).stdout)
}, 240_000)

afterAll(() => {
  program?.kill('SIGKILL')
  if (folder) rmSync(folder, { recursive: true })
})

async function start(): Promise<void> {
  const [node, ...args] = commandOf('edge/management/main')
  program = spawn(node, args, {
    env: {
      PATH: process.env['PATH'],
      HARDWARE: at('hardware.json'),
      STORE: at('hub.sqlite'),
      AUTHORIZED_KEYS: at('authorized_keys'),
      SERVICE: `supervisor:${at('none.sock')}#edge`,
      PORT: String(port),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let log = ''
  program.stdout!.on('data', (chunk: Buffer) => (log += String(chunk)))
  await vi.waitUntil(() => log.includes('management service runs'), { timeout: 30_000 })
}

interface Ended {
  status: number | null
  stdout: string
  stderr: string
}

function run(command: string, args: readonly string[], input = ''): Ended {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', input, timeout: 20_000 })
  return { status, stdout, stderr }
}

const options = (key: string): string[] => [
  '-F',
  'none',
  '-i',
  at(key),
  ...[
    'IdentitiesOnly=yes',
    'IdentityAgent=none',
    'BatchMode=yes',
    `UserKnownHostsFile=${at('known_hosts')}`,
    'StrictHostKeyChecking=yes',
    'LogLevel=INFO',
  ].flatMap((option) => ['-o', option]),
]

/** Runs `ssh larder@hub …`. */
function ssh(
  args: readonly string[],
  { key = 'ed25519', user = 'larder', more = [] as string[], input = '' } = {},
): Ended {
  return run('ssh', [...options(key), '-p', String(port), ...more, `${user}@127.0.0.1`, ...args], input)
}

const opensshTest = service('ssh')
/** Output of `id` or `uname` would prove a shell. */
const ofAShell = /uid=|Linux/

describe('OpenSSH’s own client', () => {
  opensshTest(
    'OpenSSH’s client runs the allowed commands with each type of key, and gets JSON and an exit status',
    () => {
      for (const key of ['ed25519', 'ecdsa', 'rsa']) {
        const { status, stdout } = ssh(['status'], { key })
        expect([key, status]).toEqual([key, 0])
        expect(ManagementAnswer.parse(JSON.parse(stdout))).toMatchObject({ ok: true, hub_id: 7 })
      }
      expect(ssh(['enable-bin', '9'])).toMatchObject({
        status: 2,
        stdout: expect.stringContaining('no bin 9') as string,
      })
      // The hub's service does not run here: the command fails with a message.
      expect(ssh(['restart'])).toMatchObject({
        status: 1,
        stdout: expect.stringContaining('could not be stopped') as string,
      })
    },
  )

  opensshTest('OpenSSH’s client gets no shell, no terminal and no other command', () => {
    for (const args of [
      ['id'],
      ['sh', '-c', 'id'],
      ['status;', 'id'],
      ['status', '&&', 'id'],
      ['$(id)'],
      ['uname', '-a'],
    ]) {
      const ended = ssh(args)
      expect([args, ended.status]).toEqual([args, 127])
      expect(ended.stderr).toContain('not allowed. There is no shell here')
      expect(ended.stdout).toBe('')
    }
    const shell = ssh([], { input: 'id\nuname -a\nexit\n' })
    expect(shell).toMatchObject({ status: 127, stdout: '' })
    const terminal = ssh([], { more: ['-tt'], input: 'id\n' })
    expect(terminal.status).not.toBe(0)
    expect(terminal.stdout + terminal.stderr).toContain('PTY allocation request failed')
    expect(terminal.stdout + terminal.stderr).not.toMatch(ofAShell)
  })

  opensshTest('OpenSSH’s scp and sftp copy nothing in either direction', () => {
    const file = at('file')
    writeFileSync(file, 'hello')
    const remote = 'larder@127.0.0.1:'
    const portOption = ['-P', String(port)]
    for (const [command, args] of [
      ['scp', [...portOption, file, `${remote}/tmp/larder-openssh-copied`]],
      ['scp', ['-O', ...portOption, file, `${remote}/tmp/larder-openssh-copied`]],
      ['scp', [...portOption, `${remote}${file}`, at('copied')]],
      ['scp', ['-O', ...portOption, `${remote}${file}`, at('copied')]],
      ['sftp', [...portOption, '-b', '-', 'larder@127.0.0.1']],
    ] as const) {
      const ended = run(command, [...options('ed25519'), ...args], `get ${file} ${at('copied')}\n`)
      expect([command, args, ended.status === 0]).toEqual([command, args, false])
    }
    expect(existsSync('/tmp/larder-openssh-copied')).toBe(false)
    expect(existsSync(at('copied'))).toBe(false)
  })

  opensshTest('OpenSSH’s client cannot forward anything', async () => {
    const server = createServer((socket) => socket.end('through'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const inner = (server.address() as AddressInfo).port
    const through = ssh([], { more: ['-W', `127.0.0.1:${inner}`] })
    expect(through.stdout).toBe('')
    expect(through.status).not.toBe(0)
    expect(through.stderr).toMatch(/administratively prohibited|forwarding/)
    const back = ssh(['status'], {
      more: ['-o', 'ExitOnForwardFailure=yes', '-R', `127.0.0.1:0:127.0.0.1:${inner}`],
    })
    expect(back.stderr).toMatch(/remote port forwarding failed/)
    expect(back.status).toBe(255)
    server.close()
  })

  opensshTest(
    'OpenSSH’s client is refused with a wrong key, a short key, another user, and without a key',
    () => {
      for (const given of [{ key: 'stranger' }, { key: 'short' }, { user: 'root' }, { user: 'nobody' }]) {
        const ended = ssh(['status'], given)
        expect([given, ended.status]).toEqual([given, 255])
        expect(ended.stderr).toMatch(/Permission denied \(publickey\)/)
        expect(ended.stdout).toBe('')
      }
      const none = ssh(['status'], { more: ['-o', 'PubkeyAuthentication=no'] })
      expect(none).toMatchObject({ status: 255, stdout: '' })
      // A public-key signature over SHA-1 is not accepted.
      const sha1 = ssh(['status'], { key: 'rsa', more: ['-o', 'PubkeyAcceptedAlgorithms=ssh-rsa'] })
      expect(sha1).toMatchObject({ status: 255, stdout: '' })
    },
  )

  opensshTest('OpenSSH’s client is offered no NIST curve, no MAC over plain text, and no compression', () => {
    const { status, stderr } = ssh(['status'], { more: ['-vv'] })
    expect(status).toBe(0)
    const proposal = stderr.slice(stderr.indexOf('peer server KEXINIT proposal'))
    const offered = (what: string): string[] =>
      new RegExp(`^debug2: ${what}: (.*?)\\r?$`, 'm').exec(proposal)![1]!.split(',')
    // The list also contains the names of two extensions (RFC 8308; OpenSSH's answer to Terrapin).
    const exchanges = offered('KEX algorithms').filter((name) => !/^(ext-info-s|kex-strict-s-)/.test(name))
    expect(exchanges).toEqual(['curve25519-sha256', 'curve25519-sha256@libssh.org'])
    expect(offered('host key algorithms')).toEqual(['ssh-ed25519'])
    for (const direction of ['ctos', 'stoc']) {
      for (const name of offered(`MACs ${direction}`)) expect(name).toMatch(/^hmac-sha2-.*-etm@openssh\.com$/)
      for (const name of offered(`ciphers ${direction}`)) expect(name).toMatch(/-(ctr|gcm@openssh\.com)$/)
      expect(offered(`compression ${direction}`)).toEqual(['none'])
    }
    for (const more of [
      ['-o', 'KexAlgorithms=ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521'],
      ['-o', 'KexAlgorithms=diffie-hellman-group14-sha256'],
      ['-o', 'Ciphers=aes256-ctr', '-o', 'MACs=hmac-sha2-256,hmac-sha2-512,hmac-sha1'],
    ]) {
      const ended = ssh(['status'], { more })
      expect([more, ended.status]).toEqual([more, 255])
      expect(ended.stderr).toContain('Unable to negotiate')
    }
  })

  opensshTest(
    'OpenSSH’s client always sees the same host key, and warns of another one',
    async () => {
      const end = async (): Promise<void> => {
        const ended = new Promise((resolve) => program.once('exit', resolve))
        program.kill('SIGTERM')
        await ended
      }
      await end()
      await start()
      expect(ssh(['status']).status).toBe(0)
      await end()
      const key = at('hub.sqlite.host-key')
      const old = readFileSync(key, 'utf8')
      writeFileSync(key, newKey('another').privateKey)
      await start()
      const warned = ssh(['status'])
      expect(warned.status).toBe(255)
      expect(warned.stderr).toMatch(/REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed/)
      await end()
      writeFileSync(key, old)
      await start()
      expect(ssh(['status']).status).toBe(0)
    },
    60_000,
  )
})
