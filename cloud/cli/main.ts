import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import '../../protocol/closed-output.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { runCommandLine, suggestion, type CommandLine } from './command-line.ts'

/**
 * Operators' commands at the cloud's database, by their first word. Each loads only the modules that it
 * needs.
 */
const administration: Readonly<Record<string, (runtime: Runtime) => Promise<CommandLine>>> = {
  alarms: async (runtime) => (await import('./alarms.ts')).alarmCommands(runtime),
  audit: async () => (await import('./audit.ts')).auditCommands,
  backup: async (runtime) => (await import('./backup.ts')).backupCommands(runtime),
  ca: async (runtime) => (await import('./ca.ts')).authorityCommands(runtime),
  'dead-letters': async (runtime) => (await import('./dead-letters.ts')).deadLetterCommands(runtime),
  contacts: async (runtime) => (await import('./contacts.ts')).contactCommands(runtime),
  hubs: async (runtime) => (await import('./hubs.ts')).hubCommands(runtime),
  mail: async (runtime) => (await import('./mail.ts')).mailCommands(runtime),
  keys: async (runtime) => (await import('./keys.ts')).keyCommands(runtime),
  owners: async (runtime) => (await import('./owners.ts')).ownerCommands(runtime),
  payments: async (runtime) => (await import('./payments.ts')).paymentCommands(runtime),
  people: async (runtime) => (await import('./people.ts')).peopleCommands(runtime),
  products: async (runtime) => (await import('./products.ts')).productCommands(runtime),
  releases: async (runtime) => (await import('./releases.ts')).releaseCommands(runtime),
  rollouts: async (runtime) => (await import('./rollouts.ts')).rolloutCommands(runtime),
  webhooks: async (runtime) => (await import('./webhooks.ts')).webhookCommands(runtime),
  users: async (runtime) => (await import('./users.ts')).userCommands(runtime),
  roles: async (runtime) => (await import('./roles.ts')).roleCommands(runtime),
  sessions: async (runtime) => (await import('./sessions.ts')).sessionCommands(runtime),
}

/** The commands of a noun: at the database, and calls of the service. A command at the database has precedence. */
async function commandLineOf(noun: string, verb: string, runtime: Runtime): Promise<CommandLine> {
  const own = await administration[noun]?.(runtime)
  if (own && verb in own.subcommands) return own
  const { apiCommands, apiNouns } = await import('./api-commands.ts')
  const calls = apiCommands(noun, runtime)
  if (own && calls)
    return {
      usage: `${own.usage}\n\n${calls.usage}`,
      subcommands: { ...calls.subcommands, ...own.subcommands },
    }
  const found = own ?? calls
  if (found) return found
  const nouns = [...new Set([...Object.keys(administration), ...apiNouns])].toSorted()
  const what = noun === '' ? 'a command is needed' : `no such command: ${noun}${suggestion(noun, nouns)}`
  throw new UsageError(`${what}; the commands are: ${nouns.join(', ')}`)
}

async function main([noun = '', ...args]: readonly string[]): Promise<void> {
  const runtime = systemRuntime()
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort())
  const { isTTY, columns } = process.stdout
  const outcome = await runCommandLine(await commandLineOf(noun, args[0] ?? '', runtime), args, process.env, {
    print: (line) => void process.stdout.write(line),
    warn: (line) => void process.stderr.write(line),
    ...(isTTY && { columns, hasColours: !process.env['NO_COLOR'] && process.stdout.hasColors() }),
    signal: stopped.signal,
  })
  process.stdout.write(outcome.stdout)
  process.stderr.write(outcome.stderr)
  process.exitCode = outcome.exitCode
}

await main(process.argv.slice(2)).catch((error: unknown) => {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`error: ${error.message}\n`)
  process.exitCode = 2
})
