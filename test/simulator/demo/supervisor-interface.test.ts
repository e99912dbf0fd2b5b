import { type OwnerSocket, openSupervisorInterface, Supervisor } from '../../../simulator/demo/supervisor.ts'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { supervisorManager } from '../../../edge/management/service-manager.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'

const runtime = systemRuntime()
let folder: string
let socket: string
let pids: number[]
let isReady: boolean
let supervisor: Supervisor<'hub' | 'other'>
let outside: OwnerSocket

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'larder-interface-'))
  socket = join(folder, 's.sock')
  // A launcher that was killed leaves such a file.
  writeFileSync(socket, '')
  pids = []
  isReady = true
  const script = 'setInterval(() => {}, 1000)'
  supervisor = new Supervisor({
    programs: (['hub', 'other'] as const).map((name) => ({
      name,
      command: [process.execPath, '-e', script],
      environment: {},
      logFile: join(folder, 'log'),
    })),
    runtime,
    onStarted: (name, pid) => void (name === 'hub' && pids.push(pid)),
    onDied: () => {},
  })
  outside = await openSupervisorInterface({
    supervisor,
    programs: { hub: () => Promise.resolve(isReady) },
    socket,
    clock: runtime.clock,
  })
  supervisor.start()
})
afterEach(async () => {
  outside.close()
  await supervisor.stop()
  rmSync(folder, { recursive: true })
})

const managerOf = (program: string, at = socket) => supervisorManager({ socket: at, program }, runtime.clock)

test('only the owner can access the supervisor’s socket', () => {
  expect(statSync(socket).mode & 0o777).toBe(0o600)
})

test('the supervisor’s socket stops and starts the hub as a service manager does', async () => {
  const manager = managerOf('hub')
  expect(await manager.state()).toEqual({ state: 'running', pid: pids[0] })
  expect(await manager.stop(5000)).toMatchObject({ exit_code: 0, output: 'the hub ended' })
  expect(await manager.state()).toEqual({ state: 'stopped', pid: null })
  expect(await manager.stop(5000)).toMatchObject({ exit_code: 0, output: 'the hub was not running' })
  expect(await manager.start(5000)).toMatchObject({
    exit_code: 0,
    output: `the hub runs as process ${pids[1]}`,
  })
  expect(await manager.start(5000)).toMatchObject({ exit_code: 0 })
  expect(pids).toHaveLength(2)
})

test('a program that is not ready in time is not reported as ready', async () => {
  isReady = false
  const started = await managerOf('hub').start(300)
  expect(started).toMatchObject({ exit_code: 1, output: 'the hub was not ready within 300 ms' })
  expect(started.duration_ms).toBeGreaterThanOrEqual(295)
})

test('the supervisor’s socket accepts only its programs and its commands', async () => {
  expect(await managerOf('other').stop(1000)).toMatchObject({
    exit_code: 69,
    output: expect.stringContaining('404') as string,
  })
  expect(await managerOf('nothing').state()).toEqual({ state: 'unknown', pid: null })
  expect(supervisor.stateOf('other').state).toBe('running')
})

test('a missing supervisor is reported as an answer', async () => {
  const away = managerOf('hub', join(folder, 'none.sock'))
  expect(await away.stop(1000)).toMatchObject({
    exit_code: 69,
    output: expect.stringContaining('ENOENT') as string,
  })
  expect(await away.state()).toEqual({ state: 'unknown', pid: null })
})

test('the supervisor’s socket is removed when it is closed', () => {
  outside.close()
  expect(existsSync(socket)).toBe(false)
})
