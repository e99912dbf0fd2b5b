import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { normalName } from '../../protocol/model/name-text.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { refusedExposures } from '../../protocol/model/exposure.ts'
import {
  helpText,
  readSettings,
  type SettingsOf,
  type SettingsTable,
} from '../../protocol/model/program-settings.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { appendAudit, type AuditRecord } from '../platform/audit/audit.ts'
import type { CloudContext } from '../platform/context.ts'
import {
  cloudSettings,
  databaseExposure,
  databaseUrlOf,
  readConfigFile,
} from '../platform/settings/config.ts'
import { storeSettings } from '../platform/settings/settings.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { openDatabase, type CloudDatabase, type Queries } from '../platform/store/database.ts'
import { placeOf, storeProblem } from '../platform/store/outage.ts'
import { takeCell } from '../platform/store/take-cell.ts'
import { nearestOf } from '../platform/nearest.ts'
import { escapedLines, tableOf, withHeadings } from './table.ts'
import { noSealer } from '../platform/store/sealer.ts'

/** Options of a subcommand, as typed; all take a value. */
export type Options = Readonly<Record<string, string | undefined>>

/** The input of a subcommand that uses no database. */
export interface WithoutStore {
  options: Options
  settings: SettingsOf<typeof cloudSettings>
  environment: Environment
  /** The path of `--config`. */
  config?: string | undefined
  terminal: Terminal
  runtime: Runtime
}

/** The input of a subcommand. */
export interface Invocation extends WithoutStore {
  q: Queries
  db: CloudDatabase
  context: CloudContext
}

type Environment = Readonly<Record<string, string | undefined>>

/** The terminal of a command. */
export interface Terminal {
  /** Prints at once. */
  print: (text: string) => void
  /** Prints a note for people, apart from the output. */
  warn?: (text: string) => void
  /** Width of the terminal that stdout is; absent if stdout is none: then the output is JSON. */
  columns?: number
  /** Colours its text. */
  hasColours?: boolean
  /** Aborts when the operator stops the command. */
  signal: AbortSignal
}

const silent: Terminal = { print: () => {}, signal: new AbortController().signal }

interface SubcommandShape {
  options: readonly string[]
  /** Options that may be given several times; their values are joined by line feeds. */
  repeated?: readonly string[]
  /** Options without a value. */
  flags?: readonly string[]
  /** Names of values that are given without an option, in their order. A name that is in `options`, too, may be given either way. */
  positionals?: readonly string[]
  /** The subcommand checks itself whether positionals are missing. */
  hasOptionalPositionals?: true
  /** Text of `--help`. If absent, the help of all subcommands is printed. */
  help?: () => string
  /** The subcommand returns an array; each of its items is printed on a line of its own. */
  lines?: true
  /** A picture that a terminal shows below the output. */
  picture?: (output: Record<string, unknown>, settings: WithoutStore['settings']) => string
  /** Returns true if the output reports a failure: exit code 1. */
  isFailure?: (output: unknown) => boolean
}

/** `run` returns the value to print as JSON, or undefined if the subcommand has printed its output itself. */
export type Subcommand = SubcommandShape &
  (
    | {
        /** `creates`: the subcommand may be the first act of an installation, and creates the database if there is none. */
        store?: 'creates'
        run(invocation: Invocation): Promise<unknown>
      }
    | { store: 'none'; run(invocation: WithoutStore): Promise<unknown> }
  )

export interface CommandLine {
  usage: string
  /** Settings that its help lists. If absent, the database's settings are listed. */
  settings?: SettingsTable
  subcommands: Readonly<Record<string, Subcommand>>
}

export interface Outcome {
  exitCode: 0 | 1 | 2
  stdout: string
  stderr: string
}

/**
 * Runs a command line: the output on stdout, errors on stderr. The environment or `--config` names the store. On a terminal the
 * output is a table, elsewhere and with `--json` it is JSON.
 */
export async function runCommandLine(
  { usage, subcommands, settings: listed = storeSettings }: CommandLine,
  runtime: Runtime,
  args: readonly string[],
  environment: Environment,
  given: Terminal = silent,
): Promise<Outcome> {
  const [name = '', ...rest] = args
  const terminal = given.columns === undefined ? given : withoutControls(given)
  const subcommand = subcommands[name]
  if (args.includes('--help') || args.includes('-h')) {
    const help = subcommand?.help?.() ?? helpText(usage, listed)
    return { exitCode: 0, stdout: terminal.hasColours ? withHeadings(help) : help, stderr: '' }
  }
  try {
    if (!subcommand)
      throw new UsageError(
        name === '' || name.startsWith('-')
          ? 'a command is needed; --help lists them'
          : `no such command: ${name}${suggestion(name, Object.keys(subcommands))}; --help lists them`,
      )
    const { config, json, ...options } = parse(subcommand, rest)
    const shown = terminal.columns === undefined ? (text: string) => text : escapedLines
    const columns = json === undefined ? terminal.columns : undefined
    const settings = readAll(environment, config)
    const output = await execute(subcommand, { options, settings, environment, config, terminal, runtime })
    if (output === undefined) return { exitCode: 0, stdout: '', stderr: '' }
    const exitCode = subcommand.isFailure?.(output) === true ? 1 : 0
    const stdout =
      columns === undefined
        ? shown(textOf(output, subcommand.lines ?? false))
        : tableOf(output, columns, terminal.hasColours ?? false) +
          (subcommand.picture?.(output as Record<string, unknown>, settings) ?? '')
    return { exitCode, stdout, stderr: '' }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return {
      exitCode: error instanceof UsageError ? 2 : 1,
      stdout: '',
      stderr: escapedLines(`error: ${problemOf(error)}\n`),
    }
  }
}

/** Hubs and callers of the API have written parts of the output: a log's line, a name in a table of values. */
const withoutControls = (terminal: Terminal): Terminal => ({
  ...terminal,
  print: (text) => terminal.print(escapedLines(text)),
})

/** The settings of the service. Throws a `UsageError` if one is wrong, or if the database would be called in clear. */
function readAll(environment: Environment, config: string | undefined): SettingsOf<typeof cloudSettings> {
  const result = readSettings(cloudSettings, environment, readConfigFile(config))
  if (!result.ok) throw new UsageError(result.problems.join('; '))
  const { DATABASE_URL, ALLOW_INSECURE } = result.settings
  const inClear = refusedExposures([databaseExposure(DATABASE_URL)], ALLOW_INSECURE)
  if (inClear.length > 0) throw new UsageError(inClear.join('; '))
  return result.settings
}

async function execute(subcommand: Subcommand, input: WithoutStore): Promise<unknown> {
  if (subcommand.store === 'none') return subcommand.run(input)
  const db = await openStore(databaseUrlOf(input.settings), subcommand.store, input.terminal.warn)
  try {
    await takeCell(db, input.settings.limits.rules.cell)
    return await subcommand.run({ ...input, q: db.kysely, db, context: contextOf(db, input) })
  } finally {
    await db.close()
  }
}

/**
 * Throws an error with a readable message if the database cannot be opened or reached. If there is no
 * database, a command that does not create one works on an empty database in memory. Otherwise an operator who forgot
 * DATABASE_URL would leave a file that looks like the installation's.
 */
async function openStore(url: string, use: 'creates' | undefined, warn: Terminal['warn']) {
  const file = /^sqlite:(?!:memory:)(.*)/.exec(url)?.[1]
  try {
    // A command may take its time: only its operator waits for it.
    const isAbsent = use !== 'creates' && file !== undefined && !existsSync(file)
    const db = isAbsent ? undefined : openDatabase({ url }).for('background')
    if (db && (use === 'creates' || !(await db.isEmpty()))) {
      await db.migrate()
      return db
    }
    await db?.close()
    warn?.(`DATABASE_URL: ${placeOf(url)} is no database of Larder yet, and this command creates none\n`)
    return await emptyStore()
  } catch (error) {
    const problem = storeProblem(error, url)
    throw problem === undefined ? error : new Error(problem, { cause: error })
  }
}

async function emptyStore(): Promise<CloudDatabase> {
  const db = openDatabase({ url: 'sqlite::memory:' })
  await db.migrate()
  return db
}

const textOf = (output: unknown, lines: boolean): string =>
  lines
    ? (output as unknown[]).map((item) => `${JSON.stringify(item)}\n`).join('')
    : `${JSON.stringify(output, null, 2)}\n`

/** Reads the arguments. Each value is given once and is not empty. Throws a `UsageError` otherwise. */
function parse(subcommand: Subcommand, args: string[]): Options {
  const { options, flags = [], positionals: names = [], hasOptionalPositionals = false } = subcommand
  const { repeated = [] } = subcommand
  const declared = {
    ...Object.fromEntries([...options, 'config'].map((name) => [name, { type: 'string' as const }])),
    ...Object.fromEntries([...flags, 'json'].map((name) => [name, { type: 'boolean' as const }])),
  }
  const { tokens } = parseArgs({
    args,
    options: declared,
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const given: Record<string, string> = {}
  const give = (name: string, shown: string, value: string): void => {
    if (name in given && repeated.includes(name)) value = `${given[name]}\n${value}`
    else if (name in given && value !== '') throw new UsageError(`${shown} is given twice`)
    given[name] = value
  }
  // A name that consists of invisible characters counts as empty.
  const filled = (shown: string, value: string | undefined): string => {
    if (value === undefined || normalName(value) === '') throw new UsageError(`${shown} needs a value`)
    return value
  }
  let count = 0
  for (const token of tokens)
    if (token.kind === 'positional') {
      const name = names[count++]
      if (name === undefined) throw new UsageError(`unexpected: ${token.value}`)
      give(name, name.toUpperCase(), filled(name.toUpperCase(), token.value))
    } else if (token.kind === 'option') {
      const shown = `--${token.name}`
      const type = declared[token.name]?.type
      if (type === undefined)
        throw new UsageError(
          `no such option: ${shown}${suggestion(token.name, Object.keys(declared), '--')}; --help lists them`,
        )
      if (type === 'boolean' && token.value !== undefined) throw new UsageError(`${shown} takes no value`)
      // A negative number and "-" (the standard input) are values, not options.
      const isOption = token.inlineValue === false && /^-(?!\.?\d|$)/.test(token.value)
      give(token.name, shown, type === 'boolean' ? '' : filled(shown, isOption ? undefined : token.value))
    }
  const missing = names.find((name) => !(name in given) && !options.includes(name))
  if (missing !== undefined && !hasOptionalPositionals)
    throw new UsageError(`${missing.toUpperCase()} is needed; --help shows where`)
  return given
}

/** Suggests a known word with the same beginning, or with one or two different letters. */
export function suggestion(given: string, known: readonly string[], prefix = ''): string {
  const candidates = given.length > 1 ? known.filter((each) => each.startsWith(given)) : []
  const meant = candidates.length === 1 ? candidates[0] : nearestOf(given, known)
  return meant === undefined ? '' : `; did you mean ${prefix}${meant}?`
}

/** Context for parts of the service that a command uses. It runs no background turns. */
export const contextOf = (db: CloudDatabase, { settings, runtime }: WithoutStore): CloudContext => ({
  db,
  runtime,
  log: silentLog,
  checkpoint: noCheckpoint,
  settings: settings.limits.rules,
  sealer: noSealer,
})

/** The actor of operators' commands. */
export const COMMAND_LINE = 'command line'

/** Writes an operator's action to the audit log. */
export const recordAct = (
  q: Queries,
  runtime: Runtime,
  { hubId = null, ...act }: Pick<AuditRecord, 'action' | 'object' | 'detail'> & { hubId?: number | null },
): Promise<void> => appendAudit(q, runtime, { actor: COMMAND_LINE, result: 'executed', hubId, ...act })
