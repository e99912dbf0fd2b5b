import { systemRuntime } from '../protocol/system-runtime.ts'
import { runCommandLine } from './credentials/command-line.ts'
import { productCommands } from './catalogue/product-commands.ts'

const outcome = await runCommandLine(productCommands(systemRuntime()), process.argv.slice(2), process.env)
process.stdout.write(outcome.stdout)
process.stderr.write(outcome.stderr)
process.exitCode = outcome.exitCode
