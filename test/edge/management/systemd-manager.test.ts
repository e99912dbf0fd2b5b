import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { systemdManager } from '../../../edge/management/service-manager.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-systemctl-'))))
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

/** The manager with a scripted `systemctl` that records its calls. */
function manage(script: string) {
  const program = join(folder, 'systemctl')
  const calls = join(folder, 'calls')
  writeFileSync(program, `#!/bin/sh\necho "$@" >> ${calls}\nshift\n${script}\n`)
  chmodSync(program, 0o755)
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`)
  const manager = systemdManager('larder-edge.service', systemRuntime().clock)
  return {
    manager,
    calls: () => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []),
  }
}

test('stop and start call systemctl without a question for a password', async () => {
  const { manager, calls } = manage('echo done')
  expect(await manager.stop(5000)).toMatchObject({ exit_code: 0, output: 'done' })
  expect(await manager.start(5000)).toMatchObject({ exit_code: 0, output: 'done' })
  expect(calls()).toEqual([
    '--no-ask-password stop larder-edge.service',
    '--no-ask-password start larder-edge.service',
  ])
})

test('a failed systemctl returns its exit code and its output', async () => {
  const { manager } = manage('echo "Unit not found." >&2; exit 5')
  expect(await manager.start(5000)).toMatchObject({ exit_code: 5, output: 'Unit not found.' })
})

test('a unit that does not end in time is killed', async () => {
  const { manager, calls } = manage(`
case "$1" in
  stop) [ -e "$0.killed" ] && exit 0; exec sleep 30;;
  kill) touch "$0.killed";;
esac`)
  const result = await manager.stop(300)
  expect(result).toMatchObject({ exit_code: 0, output: expect.stringContaining('SIGKILL') as string })
  expect(result.duration_ms).toBeGreaterThanOrEqual(290)
  expect(result.duration_ms).toBeLessThan(5000)
  expect(calls()[1]).toBe('--no-ask-password kill --signal=SIGKILL larder-edge.service')
})

test('a unit that is not ready in time is reported', async () => {
  const { manager } = manage('exec sleep 30')
  expect(await manager.start(200)).toMatchObject({
    exit_code: 124,
    output: expect.stringContaining('not ready within 200 ms') as string,
  })
})

test('a machine without systemd is reported', async () => {
  vi.stubEnv('PATH', folder)
  const manager = systemdManager('larder-edge.service', systemRuntime().clock)
  expect(await manager.stop(1000)).toMatchObject({
    exit_code: 127,
    output: expect.stringContaining('ENOENT') as string,
  })
  expect(await manager.state()).toEqual({ state: 'unknown', pid: null })
})

test.each([
  ['ActiveState=active\nMainPID=42', { state: 'running', pid: 42 }],
  ['ActiveState=failed\nMainPID=0', { state: 'stopped', pid: null }],
  ['ActiveState=activating\nMainPID=43', { state: 'stopped', pid: 43 }],
  ['', { state: 'unknown', pid: null }],
])('the output %j of systemctl is parsed', async (said, state) => {
  const { manager } = manage(`printf '${said.replace('\n', '\\n')}'`)
  expect(await manager.state()).toEqual(state)
})

test('an endless output of systemctl is truncated', async () => {
  const { manager } = manage('yes | head -c 60000')
  const { output } = await manager.stop(5000)
  expect(output.length).toBeLessThanOrEqual(2000)
})
