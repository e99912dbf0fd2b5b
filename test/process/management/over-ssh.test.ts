import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { waitUntilReady } from '../../../simulator/demo/programs.ts'
import { install, type Answer, type Installation } from './installation.ts'

const runtime = systemRuntime()
let folder: string
let all: Installation

// One installation for all tests; each test leaves every bin enabled.
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'larder-ssh-'))
  all = await install(folder, runtime)
  all.supervisor.start()
  const { baseUrl } = all.addresses
  const options = { clock: runtime.clock, baseUrl, hubId: 1, managementPort: all.sshPort }
  expect(await waitUntilReady({ ...options, timeoutMs: 200_000, isGivenUp: () => false })).toBe(true)
}, 240_000)
afterAll(async () => {
  await all.close()
  rmSync(folder, { recursive: true })
}, 60_000)

const until = (condition: () => Promise<boolean>): Promise<unknown> =>
  vi.waitUntil(condition, { timeout: 30_000, interval: 100 })
/** The hub's own report over MQTT; after a restart it comes a moment later. */
async function enabledByMqtt(bin: number): Promise<unknown> {
  const { body } = await all.control('GET', 'get_bin_status', bin)
  return body.result?.response_data?.['enabled']
}

const inFull = {
  stop_result: {
    exit_code: 0,
    duration_ms: expect.any(Number) as number,
    output: expect.any(String) as string,
  },
  start_result: {
    exit_code: 0,
    duration_ms: expect.any(Number) as number,
    output: expect.any(String) as string,
  },
}
const done = (bin: number, enabled: boolean, disabled: number[]): Answer => ({
  status: 200,
  body: {
    status: 'ok',
    result: {
      success: true,
      hub_id: 1,
      bin_number: bin,
      enabled_bin: bin,
      disabled_bins: disabled,
      ...inFull,
    },
  },
})
const failed = (error_type: string) => ({
  status: 200,
  body: { status: 'error', result: { success: false, error_type, hub_id: 1, bin_number: 2 } },
})

test('a bin of a hub stopped by SIGSTOP can be disabled and enabled over SSH, and stays so when the hub runs again', async () => {
  for (const enabled of [false, true]) {
    const hung = all.pidOf('edge')
    process.kill(hung, 'SIGSTOP')
    expect(await all.enabledAtHub(2)).toBeUndefined()
    expect(await all.control('POST', enabled ? 'enable_bin_ssh' : 'disable_bin_ssh')).toEqual(
      done(2, enabled, enabled ? [] : [2]),
    )
    expect(all.pidOf('edge')).not.toBe(hung)
    expect(await all.enabledAtHub(2)).toBe(enabled)
    await until(async () => (await enabledByMqtt(2)) === enabled)
  }
}, 120_000)

test('a bin disabled over SSH while MQTT is cut stays disabled when the line returns', async () => {
  all.proxy.stall(['up', 'down'], 600_000)
  all.proxy.cut()
  expect(await all.control('POST', 'disable_bin_ssh', 3)).toEqual(done(3, false, [3]))
  expect(await all.enabledAtHub(3)).toBe(false)
  all.proxy.clearFaults()
  all.proxy.cut()
  await until(async () => (await enabledByMqtt(3)) === false)
  // The cloud sends its desired state again with another change, and it agrees.
  expect((await all.control('POST', 'disable_bin', 4)).status).toBe(200)
  await until(async () => (await all.enabledAtHub(4)) === false)
  expect(await all.enabledAtHub(3)).toBe(false)

  expect((await all.control('POST', 'enable_bin_ssh', 3)).body.result?.['disabled_bins']).toEqual([4])
  expect((await all.control('POST', 'enable_bin_ssh', 4)).body.result?.['disabled_bins']).toEqual([])
  await until(async () => (await enabledByMqtt(4)) === true)
}, 120_000)

test('simultaneous SSH commands are executed one after the other', async () => {
  const answers = await Promise.all([1, 2, 3].map((bin) => all.control('POST', 'disable_bin_ssh', bin)))
  expect(answers.map(({ body }) => body.status)).toEqual(['ok', 'ok', 'ok'])
  await until(async () => (await all.enabledAtHub(3)) === false)
  expect([await all.enabledAtHub(1), await all.enabledAtHub(2)]).toEqual([false, false])
  const back = await Promise.all([1, 2, 3].map((bin) => all.control('POST', 'enable_bin_ssh', bin)))
  expect(back.map(({ body }) => body.status)).toEqual(['ok', 'ok', 'ok'])
}, 120_000)

test('a bin that the hub does not have is a validation_error, and nothing is restarted', async () => {
  const before = all.pidOf('edge')
  expect((await all.control('POST', 'enable_bin_ssh', 9)).body).toMatchObject({
    status: 'error',
    result: { error_type: 'validation_error', bin_number: 9 },
  })
  expect(all.pidOf('edge')).toBe(before)
})

test('a command without a running management service is a connection_error', async () => {
  await all.supervisor.halt('management', 5000)
  expect(await all.control('POST', 'disable_bin_ssh')).toMatchObject(failed('connection_error'))
  all.supervisor.resume('management')
  await until(async () => (await all.control('POST', 'enable_bin_ssh')).body.status === 'ok')
}, 60_000)

test('a key without access is refused, and the hub is not disturbed', async () => {
  const before = all.pidOf('edge')
  const keys = readFileSync(all.places.authorizedKeys, 'utf8')
  writeFileSync(all.places.authorizedKeys, '# nobody\n')
  expect(await all.control('POST', 'disable_bin_ssh')).toMatchObject(failed('authentication_error'))
  writeFileSync(all.places.authorizedKeys, keys)
  expect(await all.enabledAtHub(2)).toBe(true)
  expect(all.pidOf('edge')).toBe(before)
})

test('a changed host key is refused until an operator pins the new one', async () => {
  await all.supervisor.halt('management', 5000)
  const old = readFileSync(all.places.hostKey, 'utf8')
  rmSync(all.places.hostKey)
  all.supervisor.resume('management')
  await until(async () => {
    const { body } = await all.control('POST', 'disable_bin_ssh')
    expect(body.status).toBe('error')
    return body.result?.['error_type'] === 'authentication_error'
  })
  expect(readFileSync(all.places.hostKey, 'utf8')).not.toBe(old)
  expect(await all.enabledAtHub(2)).toBe(true)

  const log = readFileSync(all.places.log('management'), 'utf8')
  const fingerprint = [...log.matchAll(/"fingerprint":"(SHA256:[^"]+)"/g)].at(-1)![1]!
  const address = ['--host', '127.0.0.1', '--port', String(all.sshPort), '--host-key', fingerprint]
  expect(all.hubs('set-management', '1', ...address)).toMatchObject({ host_key: fingerprint })
  expect((await all.control('POST', 'enable_bin_ssh')).body.status).toBe('ok')
}, 60_000)

test('a management service that dies while it has stopped the hub starts the hub at its own restart', async () => {
  await all.supervisor.halt('edge', 5000)
  writeFileSync(`${all.places.journal}.paused`, '')
  process.kill(all.pidOf('management'), 'SIGKILL')
  await until(async () => (await all.enabledAtHub(1)) === true)
}, 60_000)
