import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { updateFiles } from '../../../edge/update/files.ts'
import { update } from '../../../edge/update/updater.ts'
import { systemWorld } from '../../../edge/update/world.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { NEW, updateBoard, updaterSettings } from '../../world/update-board.ts'

test.each(['', '\0\0\0', '{"now":{"step":"wai', '{"now":{"step":"unknown"},"last":null}'])(
  'a hub whose update.json is %j logs the damage once, and installs its release',
  async (damaged) => {
    const folder = mkdtempSync(join(tmpdir(), 'larder-state-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const store = join(folder, 'hub.sqlite')
    const errors: string[] = []
    const log = { ...silentLog, error: (_: unknown, message: string) => void errors.push(message) }
    const real = systemWorld({ store, update: {} } as never, systemRuntime(), log)
    writeFileSync(updateFiles(store).state, damaged)
    const hub = updateBoard()
    hub.world.state = real.state
    await update(hub.world, updaterSettings)
    expect([hub.disk.link, real.state.read().now.step]).toEqual([NEW, 'idle'])
    expect(errors).toEqual([expect.stringContaining('is damaged')])
  },
)
