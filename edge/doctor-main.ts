import '../protocol/require-node.ts'
import '../protocol/private-files.ts'
import './light-zod.ts'
import { PRODUCT_VERSION } from '../protocol/build.ts'
import { runDoctor } from '../protocol/model/doctor.ts'
import { systemRuntime } from '../protocol/system-runtime.ts'
import { readConfig } from './config.ts'
import { buildChecks, hubChecks } from './doctor/checks.ts'

const { clock } = systemRuntime()
const { exitCode, stdout, stderr } = await runDoctor({
  part: 'hub',
  version: PRODUCT_VERSION,
  clock,
  args: process.argv.slice(2),
  isTerminal: process.stdout.isTTY,
  open(path) {
    const result = readConfig(path === undefined ? [] : ['--config', path], process.env)
    const first = buildChecks(result.kind === 'problems' ? result.problems : [])
    const others = result.kind === 'config' ? hubChecks(result.config, path, clock.now()) : {}
    return Promise.resolve({ checks: { ...first, ...others }, close: () => {} })
  },
})
process.stdout.write(stdout)
process.stderr.write(stderr)
process.exit(exitCode)
