import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { runCommandLine, type CommandLine } from './command-line.ts'

/** What operators do to the cloud's store, by the first word of the command. A command loads what it needs alone. */
const commands: Readonly<Record<string, (runtime: Runtime) => Promise<CommandLine>>> = {
  alarms: async (runtime) => (await import('./alarms.ts')).alarmCommands(runtime),
  audit: async () => (await import('./audit.ts')).auditCommands,
  'dead-letters': async (runtime) => (await import('./dead-letters.ts')).deadLetterCommands(runtime),
  contacts: async (runtime) => (await import('./contacts.ts')).contactCommands(runtime),
  hubs: async (runtime) => (await import('./hubs.ts')).hubCommands(runtime),
  keys: async (runtime) => (await import('./keys.ts')).keyCommands(runtime),
  owners: async (runtime) => (await import('./owners.ts')).ownerCommands(runtime),
  payments: async (runtime) => (await import('./payments.ts')).paymentCommands(runtime),
  products: async (runtime) => (await import('./products.ts')).productCommands(runtime),
  webhooks: async (runtime) => (await import('./webhooks.ts')).webhookCommands(runtime),
  roles: async (runtime) => (await import('./roles.ts')).roleCommands(runtime),
}

const [name = '', ...args] = process.argv.slice(2)
const command = commands[name]
if (command) {
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort())
  const outcome = await runCommandLine(await command(systemRuntime()), args, process.env, {
    print: (line) => void process.stdout.write(line),
    warn: (line) => void process.stderr.write(line),
    ...(process.stdout.isTTY && { columns: process.stdout.columns }),
    signal: stopped.signal,
  })
  process.stdout.write(outcome.stdout)
  process.stderr.write(outcome.stderr)
  process.exitCode = outcome.exitCode
} else {
  process.stderr.write(`error: the commands are: ${Object.keys(commands).join(', ')}\n`)
  process.exitCode = 2
}
