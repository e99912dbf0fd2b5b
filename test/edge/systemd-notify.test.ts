import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { systemdNotify } from '../../edge/supervision.ts'
import { silentLog, type Log } from '../../protocol/model/log.ts'
import { onPath } from '../support/on-path.ts'
import { commandOf, packageRoot } from '../support/programs.ts'
import { service } from '../support/services.ts'

const launcher = join(packageRoot(), 'edge/packaging/notify-socket.pl')

/** Prints each datagram of the socket that it inherits as descriptor 3, one per line. */
const reader = `
const { readSync } = require('node:fs')
const buffer = Buffer.alloc(4096)
const next = () => {
  try {
    console.log(buffer.toString('utf8', 0, readSync(3, buffer)))
  } catch {}
  setTimeout(next, 5)
}
next()`

/**
 * Sends three messages to the service manager with the compiled sources, without access to any other program.
 */
const speaker = `
import { systemdNotify } from ${JSON.stringify(pathToFileURL(commandOf('edge/supervision')[1]!))}
const log = { warn: (fields) => console.error(fields) }
for (const word of ['READY=1', 'WATCHDOG=1', 'STOPPING=1']) systemdNotify(process.env, log)(word)`

service('systemd')(
  'notifications reach a real datagram socket directly from the hub, without a helper process',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'larder-notify-'))
    const socket = join(folder, 'notify')
    const listener = spawn('systemd-socket-activate', ['-d', '-l', socket, process.execPath, '-e', reader], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    try {
      while (!existsSync(socket)) await delay(5)
      const words = ['--input-type=module', '-e', speaker]
      const { status, stderr } = spawnSync(onPath('perl')!, [launcher, process.execPath, ...words], {
        encoding: 'utf8',
        env: { NOTIFY_SOCKET: socket },
      })
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      let read = ''
      for await (const chunk of listener.stdout) {
        read += String(chunk)
        if (read.includes('STOPPING=1\n')) break
      }
      expect(read.trim().split('\n')).toEqual(['READY=1', 'WATCHDOG=1', 'STOPPING=1'])
    } finally {
      listener.kill()
      rmSync(folder, { recursive: true })
    }
  },
)

it('notifications without a manager are skipped, and a failed one is a warning', () => {
  const warned: unknown[] = []
  const log: Log = { ...silentLog, warn: (fields) => warned.push(fields) }
  systemdNotify({}, log)('READY=1')
  expect(warned).toEqual([])
  systemdNotify({ NOTIFY_SOCKET: '/run/notify' }, log)('READY=1')
  systemdNotify({ NOTIFY_SOCKET: '/run/notify', NOTIFY_FD: '1000' }, log)('READY=1')
  expect(warned).toEqual([
    { state: 'READY=1', error: expect.stringContaining('not started by `larder edge`') as string },
    { state: 'READY=1', error: expect.stringContaining('EBADF') as string },
  ])
})

service('systemd')('a missing notification socket is named, and nothing is started', () => {
  const { status, stderr } = spawnSync(onPath('perl')!, [launcher, process.execPath, '--version'], {
    encoding: 'utf8',
    env: { NOTIFY_SOCKET: '/nowhere/notify' },
  })
  expect(status).not.toBe(0)
  expect(stderr).toMatch(/^larder: the socket \/nowhere\/notify of the service manager: /)
})
