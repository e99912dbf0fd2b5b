import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { runCommandLine, type CommandLine } from './command-line.ts'

/** What operators do to the cloud's store, by the first word of the command. A command loads what it needs alone. */
const commands: Readonly<Record<string, (runtime: Runtime) => Promise<CommandLine>>> = {
  audit: async () => (await import('./audit.ts')).auditCommands,
  hubs: async (runtime) => (await import('./hubs.ts')).hubCommands(runtime),
  keys: async (runtime) => (await import('./keys.ts')).keyCommands(runtime),
  payments: async (runtime) => (await import('./payments.ts')).paymentCommands(runtime),
  products: async (runtime) => (await import('./products.ts')).productCommands(runtime),
  roles: async (runtime) => (await import('./roles.ts')).roleCommands(runtime),
}

const [name = '', ...args] = process.argv.slice(2)
const command = commands[name]
if (command) {
  const outcome = await runCommandLine(await command(systemRuntime()), args, process.env)
  process.stdout.write(outcome.stdout)
  process.stderr.write(outcome.stderr)
  process.exitCode = outcome.exitCode
} else {
  process.stderr.write(`error: the commands are: ${Object.keys(commands).join(', ')}\n`)
  process.exitCode = 2
}
