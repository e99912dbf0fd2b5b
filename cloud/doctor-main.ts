import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import { PRODUCT_VERSION } from '../protocol/build.ts'
import { runDoctor } from '../protocol/model/doctor.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { buildChecks, cloudChecks } from './operations/doctor/checks.ts'
import { readCloudConfig, readConfigFile } from './platform/settings/config.ts'

const runtime = systemRuntime()

function read(path: string | undefined) {
  try {
    return readCloudConfig(process.env, readConfigFile(path))
  } catch (error) {
    return { ok: false as const, problems: [error instanceof Error ? error.message : String(error)] }
  }
}

const { exitCode, stdout, stderr } = await runDoctor({
  part: 'cloud',
  version: PRODUCT_VERSION,
  clock: runtime.clock,
  args: process.argv.slice(2),
  isTerminal: process.stdout.isTTY,
  open(path) {
    const result = read(path)
    const first = buildChecks(result.ok ? [] : result.problems)
    if (!result.ok) return Promise.resolve({ checks: first, close: () => {} })
    const { checks, close } = cloudChecks(result.config, path, runtime)
    return Promise.resolve({ checks: { ...first, ...checks }, close })
  },
})
process.stdout.write(stdout)
process.stderr.write(stderr)
// A library may hold a connection open.
process.exit(exitCode)
