import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import '../../protocol/closed-output.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { runCommandLine, suggestion, type CommandLine } from './command-line.ts'

/**
 * Operators' commands at the cloud's database, by their first word. Each loads only the modules that it
 * needs.
 */
const administration: Readonly<Record<string, () => Promise<CommandLine>>> = {
  alarms: async () => (await import('./alarms.ts')).alarmCommands,
  audit: async () => (await import('./audit.ts')).auditCommands,
  backup: async () => (await import('./backup.ts')).backupCommands,
  ca: async () => (await import('./ca.ts')).authorityCommands,
  'dead-letters': async () => (await import('./dead-letters.ts')).deadLetterCommands,
  contacts: async () => (await import('./contacts.ts')).contactCommands,
  hubs: async () => (await import('./hubs.ts')).hubCommands,
  mail: async () => (await import('./mail.ts')).mailCommands,
  keys: async () => (await import('./keys.ts')).keyCommands,
  owners: async () => (await import('./owners.ts')).ownerCommands,
  payments: async () => (await import('./payments.ts')).paymentCommands,
  people: async () => (await import('./people.ts')).peopleCommands,
  products: async () => (await import('./products.ts')).productCommands,
  releases: async () => (await import('./releases.ts')).releaseCommands,
  rollouts: async () => (await import('./rollouts.ts')).rolloutCommands,
  webhooks: async () => (await import('./webhooks.ts')).webhookCommands,
  users: async () => (await import('./users.ts')).userCommands,
  roles: async () => (await import('./roles.ts')).roleCommands,
  sessions: async () => (await import('./sessions.ts')).sessionCommands,
}

/** The commands of a noun: at the database, and calls of the service. A command at the database has precedence. */
async function commandLineOf(noun: string, verb: string): Promise<CommandLine> {
  const own = await administration[noun]?.()
  if (own && verb in own.subcommands) return own
  const { apiCommands, apiNouns } = await import('./api-commands.ts')
  const calls = apiCommands(noun)
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
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort())
  const { isTTY, columns } = process.stdout
  const commands = await commandLineOf(noun, args[0] ?? '')
  const outcome = await runCommandLine(commands, systemRuntime(), args, process.env, {
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
