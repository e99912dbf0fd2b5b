import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import './light-zod.ts'
import { pino } from 'pino'
import { sleep } from '../protocol/model/runtime.ts'
import { edgeSettings } from '../protocol/settings/hub.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { readProgram } from './config.ts'
import { runProgram } from './run-program.ts'
import { Progress } from './update/progress.ts'
import { update } from './update/updater.ts'
import { systemWorld } from './update/world.ts'

const USAGE = `Usage: larder updater [--config FILE] [--help [--all]]

Installs the release that a rollout gives to this hub: downloads and verifies it, waits until no order is in progress, copies the
journal, switches the link releases/current beside STORE, and restarts larder-edge.service. If the new release is not ready,
welcomed by the cloud and connected to its controllers within UPDATE_CONFIRM_MS (5 minutes), the former one returns with its
journal. The unit larder-updater runs it. It reads the configuration of the hub's service.`

const read = readProgram(edgeSettings, USAGE, process.argv.slice(2), process.env)
const result = read.kind === 'settings' ? { ...read, kind: 'config' as const } : read

await runProgram('updater', result, async ({ settings }) => {
  const runtime = systemRuntime()
  const log = pino({ level: settings.logLevel, base: { part: 'updater' } })
  const world = systemWorld(settings, runtime, log)
  const progress = new Progress(world)
  const { checkMs, againMs } = settings.update
  for (;;) {
    const isDone = await update(world, settings.update, progress).then(
      () => true,
      (error: unknown) => log.warn({ error: String(error) }, 'the update failed'),
    )
    await sleep(runtime.clock, isDone === true ? checkMs : againMs)
  }
})
