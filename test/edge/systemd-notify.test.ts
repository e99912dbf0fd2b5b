import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { systemdNotify } from '../../edge/supervision.ts'
import { silentLog, type Log } from '../../protocol/model/log.ts'
import { service } from '../support/services.ts'

/** Prints each datagram of the socket that it inherits as descriptor 3, one a line. */
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

service('systemd')('notices arrive at a real datagram socket as systemd reads them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-notify-'))
  const socket = join(folder, 'notify')
  const listener = spawn('systemd-socket-activate', ['-d', '-l', socket, process.execPath, '-e', reader], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    while (!existsSync(socket)) await delay(5)
    const notify = systemdNotify(socket, silentLog)
    notify('READY=1')
    let read = ''
    let isWatched = false
    for await (const chunk of listener.stdout) {
      read += String(chunk)
      // What is read comes in pieces: more of them may come before the second notice.
      if (read.includes('READY=1\n') && !isWatched) {
        isWatched = true
        notify('WATCHDOG=1')
      }
      if (read.includes('WATCHDOG=1\n')) break
    }
    // Between them `BARRIER=1`: systemd-notify waits until its message was read.
    expect(read.split('\n').filter((line) => line.endsWith('=1') && line !== 'BARRIER=1')).toEqual([
      'READY=1',
      'WATCHDOG=1',
    ])
  } finally {
    listener.kill()
    rmSync(folder, { recursive: true })
  }
})

it('says nothing where no manager listens, and warns where it cannot be told', async () => {
  systemdNotify(undefined, silentLog)('READY=1')
  const warned = await new Promise<string>((resolve) => {
    const log: Log = { ...silentLog, warn: (_fields, message) => resolve(message) }
    systemdNotify('/nowhere/notify', log)('READY=1')
  })
  expect(warned).toBe('the service manager could not be notified')
})
