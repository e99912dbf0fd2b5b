import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { demoPorts } from '../../simulator/demo/settings.ts'
import { portSettings } from '../support/ports.ts'
import { commandOf } from '../support/programs.ts'
import { startDemoPrograms } from '../world/demo.ts'

/** A demo with a hub that confirms within 10 s, and the operator's commands. */
async function world() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-desired-'))
  const settings = {
    DATA_DIR: join(folder, 'data'),
    ...(await portSettings(demoPorts)),
    APPLY_CONFIRM_MS: '10000',
  }
  const programs = await startDemoPrograms({ folder, args: ['--gpio', 'socket'], settings, ports: {} })
  onTestFinished(async () => {
    await programs.stop()
    rmSync(folder, { recursive: true })
  })
  await programs.ready()
  const run = async (...args: string[]) => {
    const [node, ...main] = commandOf('cloud/cli/main')
    const env = { PATH: process.env['PATH'], DATA_DIR: join(folder, 'data/cloud') }
    const child = spawn(node, [...main, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
    const status = await new Promise((resolve) => child.once('close', resolve))
    expect([args, status]).toEqual([args, 0])
    return JSON.parse(stdout) as unknown
  }
  const alarms = async () =>
    ((await run('alarms', 'list')) as { kind: string; subject: string; details: object }[])
      .filter(({ kind }) => kind === 'update_failed')
      .map(({ subject }) => subject)
  return {
    folder,
    show: () => run('hubs', 'show', '1'),
    set: (...args: string[]) => run('hubs', 'set', '1', ...args),
    exported: () =>
      run('hubs', 'export', '1') as Promise<{ hardware: HardwareDescription; settings: object }>,
    alarms,
  }
}

const WAIT = { timeout: 120_000, interval: 1000 }

test('a hub undoes a wrong MQTT address or serial path with an alarm, and keeps a setting that works', async () => {
  const { folder, show, set, exported, alarms } = await world()
  await expect
    .poll(show, WAIT)
    .toMatchObject({ desired_version: 1, applied_version: 1, apply_state: 'applied' })
  // The cloud had no hardware description of the hub.
  await expect.poll(async () => (await exported()).hardware, WAIT).toMatchObject({ hubId: 1 })
  await set('--setting', 'MQTT_URL=mqtt://127.0.0.1:9')
  await expect.poll(show, WAIT).toMatchObject({
    online: true,
    desired_version: 2,
    applied_version: 1,
    apply_state: 'rolled_back',
    apply_error: expect.stringContaining('the cloud is not reached') as string,
  })
  await expect.poll(alarms, WAIT).toEqual(['settings 2'])
  await set('--setting', 'MQTT_URL=', '--setting', 'HEARTBEAT_MS=5000')
  await expect
    .poll(show, WAIT)
    .toMatchObject({ desired_version: 3, applied_version: 3, apply_state: 'applied' })
  await expect.poll(alarms, WAIT).toEqual([])
  const { hardware, settings } = await exported()
  expect(settings).toEqual({ HEARTBEAT_MS: '5000' })
  const wrong = join(folder, 'wrong.json')
  const [first, ...others] = hardware.controllers
  writeFileSync(
    wrong,
    JSON.stringify({ ...hardware, controllers: [{ ...first, port: '/dev/none' }, ...others] }),
  )
  await set('--hardware', wrong)
  await expect.poll(show, WAIT).toMatchObject({
    online: true,
    applied_version: 3,
    apply_state: 'rolled_back',
    apply_error: expect.stringContaining(`controller ${first!.id}`) as string,
  })
  await expect.poll(alarms, WAIT).toEqual(['settings 4'])
}, 600_000)
