import '../../protocol/require-node.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { auditCommands } from './audit.ts'
import { runCommandLine, type CommandLine } from './command-line.ts'
import { hubCommands } from './hubs.ts'
import { keyCommands } from './keys.ts'
import { productCommands } from './products.ts'
import { roleCommands } from './roles.ts'

/** What operators do to the cloud's store, by the first word of the command. */
const commands: Readonly<Record<string, (runtime: Runtime) => CommandLine>> = {
  audit: () => auditCommands,
  hubs: hubCommands,
  keys: keyCommands,
  products: productCommands,
  roles: roleCommands,
}

const [name = '', ...args] = process.argv.slice(2)
const command = commands[name]
if (command) {
  const outcome = await runCommandLine(command(systemRuntime()), args, process.env)
  process.stdout.write(outcome.stdout)
  process.stderr.write(outcome.stderr)
  process.exitCode = outcome.exitCode
} else {
  process.stderr.write(`error: the commands are: ${Object.keys(commands).join(', ')}\n`)
  process.exitCode = 2
}
