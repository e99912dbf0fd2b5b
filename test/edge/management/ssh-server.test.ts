import { once } from 'node:events'
import ssh2 from 'ssh2'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { parseCommand } from '../../../protocol/management/command.ts'
import { newKey } from '../../../protocol/management/new-key.ts'
import {
  answered,
  dial,
  exec,
  login,
  openRig,
  readChannel,
  type Ran,
  type RigOptions,
  type SshRig,
} from './ssh-rig.ts'

const rigs: SshRig[] = []
const clients: ssh2.Client[] = []
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy()
  for (const rig of rigs.splice(0)) rig.close()
})

async function open(options?: RigOptions): Promise<SshRig> {
  const rig = await openRig(options)
  rigs.push(rig)
  return rig
}
async function enter(rig: SshRig, options?: Partial<ssh2.ConnectConfig>): Promise<ssh2.Client> {
  const client = await login(rig, options)
  client.on('error', () => {})
  clients.push(client)
  return client
}

test('a removed key ends its open connections, also during a command', async () => {
  const rig = await open({ limits: { recheckMs: 50 }, execute: () => new Promise(() => {}) })
  const [idle, busy] = [await enter(rig), await enter(rig)]
  busy.exec('restart', () => {})
  const ended = [once(idle, 'close'), once(busy, 'close')]
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(rig.logged.map(({ message }) => message)).not.toContain('the key of an open connection was removed')
  rig.authorize(newKey('other').publicKey)
  await Promise.all(ended)
  expect(rig.logged.map(({ message }) => message)).toContain('the key of an open connection was removed')
})

describe('the commands', () => {
  test('an SSH command of the set is executed and answered', async () => {
    const rig = await open()
    const client = await enter(rig)
    for (const line of ['status', 'restart', 'enable-bin 1', 'disable-bin 4']) {
      const ran = await exec(client, line)
      expect(ran).toEqual({ code: 0, stdout: `${JSON.stringify(answered)}\n`, stderr: '' })
      expect(rig.commands.splice(0)).toEqual([parseCommand(line)])
      const told = rig.logged.splice(0).filter(({ message }) => message.startsWith('command'))
      expect(told.map(({ message }) => message)).toEqual(['command', 'command done'])
      expect(told[0]!.fields).toMatchObject({
        key: expect.stringMatching(/^SHA256:/) as string,
        comment: 'caller',
      })
    }
  })

  test('any other SSH command is refused with a list of commands', async () => {
    const rig = await open()
    const client = await enter(rig)
    for (const line of ['id', 'enable-bin 1; id', 'scp -t /tmp', 'sh', 'x'.repeat(20_000), '', '\n']) {
      const ran = await exec(client, line)
      expect(ran).toMatchObject({ code: 127, stdout: '' })
      expect(ran.stderr).toContain('not allowed')
      expect(ran.stderr).toContain('enable-bin N')
      expect(rig.logged.splice(0).map(({ message }) => message)).toContain(
        'refused: not a command of the set',
      )
    }
    expect(rig.commands).toEqual([])
  })

  test('a failed SSH command has a non-zero exit code, and an internal error reveals no details', async () => {
    const failed = { hub_id: 1, error: 'no', stored: false, stop_result: null, start_result: null }
    const rig = await open({
      execute: (command) => {
        if (command.name === 'status') return Promise.reject(new Error('secret'))
        const error_type = command.name === 'restart' ? 'command_failed' : 'validation_error'
        return Promise.resolve({ ok: false, ...failed, error_type })
      },
    })
    const client = await enter(rig)
    expect(await exec(client, 'restart')).toMatchObject({ code: 1 })
    expect(await exec(client, 'enable-bin 9')).toMatchObject({ code: 2 })
    const defect = await exec(client, 'status')
    expect(defect).toMatchObject({ code: 1, stdout: '' })
    expect(defect.stderr).not.toContain('secret')
  })

  test('a command is informed when its caller hangs up', async () => {
    let isWaiting: (() => boolean) | undefined
    const rig = await open({
      execute: (_command, waits) => {
        isWaiting = waits
        return new Promise(() => {})
      },
    })
    const client = await enter(rig)
    client.exec('restart', () => {})
    await vi.waitUntil(() => isWaiting !== undefined)
    expect(isWaiting!()).toBe(true)
    client.destroy()
    await vi.waitUntil(() => !isWaiting!())
  })
})

describe('refused SSH features', () => {
  test('an SSH shell lists the commands and ends', async () => {
    const rig = await open()
    const client = await enter(rig)
    const ran = await new Promise<Ran>((resolve, reject) =>
      client.shell(false, (error, channel) => {
        if (error) return reject(error)
        channel.write('id\n')
        resolve(readChannel(channel))
      }),
    )
    expect(ran).toMatchObject({ code: 127, stdout: '' })
    expect(ran.stderr).toContain('There is no shell here')
  })

  test('an SSH terminal is refused', async () => {
    const client = await enter(await open())
    const refused = new Promise((_resolve, reject) =>
      client.exec('status', { pty: true }, (error) => reject(error ?? new Error('taken'))),
    )
    await expect(refused).rejects.toThrow(/pseudo-terminal/)
  })

  test('X11 is not forwarded, and variables are not set', async () => {
    const rig = await open()
    const client = await enter(rig)
    const ran = await new Promise<Ran>((resolve, reject) =>
      client.exec('status', { env: { LD_PRELOAD: '/tmp/evil.so' } }, (error, channel) =>
        error ? reject(error) : resolve(readChannel(channel)),
      ),
    )
    expect(ran).toMatchObject({ code: 0 })
    await expect(
      new Promise((resolve, reject) =>
        client.exec('status', { x11: true }, (error) => (error ? reject(error) : resolve(undefined))),
      ),
    ).rejects.toThrow(/X11/)
  })

  test('SFTP and other SSH subsystems are refused', async () => {
    const client = await enter(await open())
    await expect(
      new Promise((resolve, reject) => client.sftp((error) => (error ? reject(error) : resolve(undefined)))),
    ).rejects.toThrow(/subsystem/)
    await expect(
      new Promise((resolve, reject) =>
        client.subsys('netconf', (error) => (error ? reject(error) : resolve(undefined))),
      ),
    ).rejects.toThrow(/subsystem/)
  })

  test('no SSH connection is forwarded, in either direction', async () => {
    const rig = await open()
    const client = await enter(rig, { strictVendor: false })
    await expect(
      new Promise((resolve, reject) =>
        client.forwardOut('127.0.0.1', 1, '127.0.0.1', rig.port, (error) =>
          error ? reject(error) : resolve(undefined),
        ),
      ),
    ).rejects.toThrow(/Channel open failure/)
    await expect(
      new Promise((resolve, reject) =>
        client.forwardIn('127.0.0.1', 0, (error) => (error ? reject(error) : resolve(undefined))),
      ),
    ).rejects.toThrow(/Unable to bind/)
    await expect(
      new Promise((resolve, reject) =>
        client.openssh_forwardOutStreamLocal('/run/socket', (error) =>
          error ? reject(error) : resolve(undefined),
        ),
      ),
    ).rejects.toThrow(/Channel open failure/)
  })

  test('an SSH connection has a maximum number of sessions', async () => {
    const client = await enter(await open({ limits: { sessions: 2 } }))
    expect(await exec(client, 'status')).toMatchObject({ code: 0 })
    expect(await exec(client, 'status')).toMatchObject({ code: 0 })
    await expect(exec(client, 'status')).rejects.toThrow(/Channel open failure/)
  })
})

describe('the SSH login', () => {
  test('a key that is not in the file is refused, and so is a removed key', async () => {
    const rig = await open()
    await expect(login(rig, { privateKey: newKey('stranger').privateKey })).rejects.toThrow(/authentication/)
    await enter(rig)
    rig.authorize('')
    await expect(login(rig)).rejects.toThrow(/authentication/)
    expect(rig.logged.map(({ message }) => message)).toContain('login refused')
  })

  test('another SSH user is refused, with the same key', async () => {
    await expect(login(await open(), { username: 'root' })).rejects.toThrow(/authentication/)
  })

  test('SSH passwords and keyboard-interactive logins are refused', async () => {
    const rig = await open()
    const noKey = { privateKey: undefined as unknown as string }
    await expect(login(rig, { ...noKey, password: 'larder' })).rejects.toThrow(/authentication/)
    await expect(login(rig, { ...noKey, tryKeyboard: true })).rejects.toThrow(/authentication/)
    await expect(login(rig, noKey)).rejects.toThrow(/authentication/)
    expect(rig.commands).toEqual([])
  })

  test('an SSH connection ends after too many refused logins', async () => {
    const rig = await open({ limits: { attempts: 3 } })
    let attempts = 0
    const authHandler: ssh2.AuthHandlerMiddleware = (_left, _partial, next) => {
      attempts++
      next({ type: 'publickey', username: 'larder', key: newKey('stranger').privateKey })
    }
    await expect(login(rig, { privateKey: undefined as unknown as string, authHandler })).rejects.toThrow()
    expect(attempts).toBeLessThanOrEqual(4)
    await vi.waitUntil(() => rig.logged.some(({ message }) => message === 'too many attempts'))
  })
})

describe('slow SSH callers', () => {
  test('an SSH connection without a greeting or a login is closed', async () => {
    const rig = await open({ limits: { loginMs: 200 } })
    const silent = dial(rig.port)
    const slow = dial(rig.port)
    slow.socket.write('SSH-2.0-sl')
    const greeting = dial(rig.port)
    greeting.socket.write('SSH-2.0-slow\r\n')
    await Promise.all([silent.closed, slow.closed, greeting.closed])
  })

  test('a flood from one address takes only places of that address: an operator logs in from another one each time', async () => {
    const rig = await open()
    const flood = floodOf(rig.port, '127.0.0.2')
    try {
      await vi.waitUntil(() => flood.count() > 200, { timeout: 10_000 })
      for (let time = 0; time < 8; time++) {
        const client = await enter(rig)
        expect(await exec(client, 'status')).toMatchObject({ code: 0 })
        client.end()
      }
    } finally {
      flood.stop()
    }
    expect(rig.logged.map(({ message }) => message)).toContain(
      'too many connections without a login: some are turned away',
    )
  })

  test('a flood of short connections leaves a place also to its own address', async () => {
    const rig = await open()
    const flood = floodOf(rig.port, '127.0.0.1', 100)
    try {
      await vi.waitUntil(() => flood.count() > 200, { timeout: 10_000 })
      let logins = 0
      for (let tries = 0; tries < 10; tries++) {
        const client = await login(rig).catch(() => undefined)
        if (!client) continue
        logins++
        client.end()
      }
      expect(logins).toBeGreaterThanOrEqual(5)
    } finally {
      flood.stop()
    }
  })

  test('the number of logged-in callers is limited', async () => {
    const rig = await open({ limits: { callers: 1 } })
    const first = await enter(rig)
    await expect(login(rig)).rejects.toThrow(/closed/)
    expect(rig.logged.map(({ message }) => message)).toContain('too many callers')
    first.end()
    await once(first, 'close')
    expect(await exec(await enter(rig), 'status')).toMatchObject({ code: 0 })
  })

  test('an SSH connection without a command is closed, and one with a command is not', async () => {
    let finish = (): void => {}
    const rig = await open({
      limits: { idleMs: 1000 },
      execute: () => new Promise((resolve) => (finish = () => resolve(answered))),
    })
    const busy = await enter(rig)
    const running = exec(busy, 'restart')
    const idle = await enter(rig)
    await once(idle, 'close')
    finish()
    expect(await running).toMatchObject({ code: 0 })
    await once(busy, 'close')
  })

  test('every SSH connection ends after its maximum time', async () => {
    const rig = await open({ limits: { connectionMs: 2000 }, execute: () => new Promise(() => {}) })
    const client = await enter(rig)
    // The client may be writing when the connection ends.
    client.on('error', () => {})
    client.exec('restart', () => {})
    await new Promise<void>((resolve) => client.once('close', () => resolve()))
  })
})

test('bytes that are not SSH end only their connection', async () => {
  const rig = await open()
  for (const bytes of [
    'GET / HTTP/1.1\r\n\r\n',
    'SSH-1.5-old\r\n',
    `SSH-2.0-x\r\n${'\xff'.repeat(5000)}`,
    '\0'.repeat(70_000),
  ]) {
    const { socket, closed } = dial(rig.port)
    socket.write(bytes, 'latin1')
    await closed
  }
  expect(await exec(await enter(rig), 'status')).toMatchObject({ code: 0 })
})

/** Some 200 connections a second from an address; each sends a greeting, and ends after `stayMs` or never. */
function floodOf(port: number, from: string, stayMs?: number): { count: () => number; stop: () => void } {
  const dialled = new Set<ReturnType<typeof dial>>()
  const timers = new Set<NodeJS.Timeout>()
  let count = 0
  const every = setInterval(() => {
    for (let each = 0; each < 4; each++) {
      const one = dial(port, from)
      count++
      dialled.add(one)
      one.socket.write('SSH-2.0-flood\r\n')
      void one.closed.then(() => dialled.delete(one))
      if (stayMs !== undefined) timers.add(setTimeout(() => one.socket.destroy(), stayMs))
    }
  }, 20)
  return {
    count: () => count,
    stop() {
      clearInterval(every)
      for (const timer of timers) clearTimeout(timer)
      for (const { socket } of dialled) socket.destroy()
    },
  }
}
