import { systemRuntime } from '../protocol/system-runtime.ts'
import { runCommandLine } from './credentials/command-line.ts'
import { hubCommands } from './management/hub-commands.ts'

const outcome = await runCommandLine(hubCommands(systemRuntime()), process.argv.slice(2), process.env)
process.stdout.write(outcome.stdout)
process.stderr.write(outcome.stderr)
process.exitCode = outcome.exitCode
