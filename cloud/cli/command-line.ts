import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { nameText, normalName } from '../../protocol/model/name-text.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { refusedExposures } from '../../protocol/model/exposure.ts'
import {
  helpText,
  readSettings,
  type SettingsOf,
  type SettingsTable,
} from '../../protocol/model/program-settings.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { appendAudit, type AuditRecord } from '../platform/audit/audit.ts'
import type { CloudContext } from '../platform/context.ts'
import type { HubSelection } from '../platform/credentials/api-keys.ts'
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
import { nearestOf } from '../platform/nearest.ts'
import { problemText, schemaProblems } from '../../protocol/model/schema-problems.ts'
import { fileProblem } from '../../protocol/model/system-error.ts'
import { tableOf, withHeadings } from './table.ts'
import { noSealer } from '../platform/store/sealer.ts'

/** Options of a subcommand, as typed; all take a value. */
export type Options = Readonly<Record<string, string | undefined>>

/** The input of a subcommand that uses no database. */
export interface WithoutStore {
  options: Options
  settings: SettingsOf<typeof cloudSettings>
  environment: Environment
  terminal: Terminal
}

/** The input of a subcommand. */
export interface Invocation extends WithoutStore {
  q: Queries
  db: CloudDatabase
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
  /** Options without a value. */
  flags?: readonly string[]
  /** Names of values that are given without an option, in their order. A name that is in `options`, too, may be given either way. */
  positionals?: readonly string[]
  /** The subcommand checks itself whether positionals are missing. */
  hasOptionalPositionals?: true
  /** Text of `--help`; absent: that of all subcommands. */
  help?: () => string
  /** The subcommand returns an array; each of its items is printed on a line of its own. */
  lines?: true
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
  /** Settings that its help lists; absent: those of the database. */
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
  args: readonly string[],
  environment: Environment,
  terminal: Terminal = silent,
): Promise<Outcome> {
  const [name = '', ...rest] = args
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
    const columns = json === undefined ? terminal.columns : undefined
    const output = await execute(subcommand, {
      options,
      settings: readAll(environment, config),
      environment,
      terminal,
    })
    if (output === undefined) return { exitCode: 0, stdout: '', stderr: '' }
    const exitCode = subcommand.isFailure?.(output) === true ? 1 : 0
    const stdout =
      columns === undefined
        ? textOf(output, subcommand.lines ?? false)
        : tableOf(output, columns, terminal.hasColours ?? false)
    return { exitCode, stdout, stderr: '' }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return { exitCode: error instanceof UsageError ? 2 : 1, stdout: '', stderr: `error: ${error.message}\n` }
  }
}

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
    return await subcommand.run({ ...input, q: db.kysely, db })
  } finally {
    await db.close()
  }
}

/**
 * Throws a sentence if the database cannot be opened or reached. A command that creates no database gets an empty one in memory
 * if there is none: an operator who forgot DATABASE_URL would leave a file that looks like the installation's.
 */
async function openStore(url: string, use: 'creates' | undefined, warn: Terminal['warn']) {
  const file = /^sqlite:(?!:memory:)(.*)/.exec(url)?.[1]
  try {
    // A command may take its time: nobody waits for it but the operator.
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

/** Each value is given once and is not empty. Throws a `UsageError` otherwise. */
function parse(subcommand: Subcommand, args: string[]): Options {
  const { options, flags = [], positionals: names = [], hasOptionalPositionals = false } = subcommand
  const declared = {
    ...Object.fromEntries([...options, 'config'].map((name) => [name, { type: 'string' as const }])),
    ...Object.fromEntries([...flags, 'json'].map((name) => [name, { type: 'boolean' as const }])),
  }
  try {
    const { tokens, positionals } = parseArgs({
      args: withNegatives(args),
      options: declared,
      allowPositionals: names.length > 0,
      tokens: true,
    })
    if (positionals.length > names.length) throw new UsageError(`unexpected: ${positionals[names.length]}`)
    const given: Record<string, string> = {}
    const give = (name: string, shown: string, value: string | undefined): void => {
      if (name in given && value !== undefined) throw new UsageError(`${shown} is given twice`)
      // A flag has no value. A name of invisible characters is as empty as a blank one.
      if (value !== undefined && normalName(value) === '') throw new UsageError(`${shown} needs a value`)
      given[name] = value ?? ''
    }
    for (const token of tokens) if (token.kind === 'option') give(token.name, `--${token.name}`, token.value)
    for (const [index, value] of positionals.entries())
      give(names[index]!, names[index]!.toUpperCase(), value)
    const missing = names.find((name) => !(name in given) && !options.includes(name))
    if (missing !== undefined && !hasOptionalPositionals)
      throw new UsageError(`${missing.toUpperCase()} is needed; --help shows where`)
    return given
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(optionProblem(error, Object.keys(declared)))
  }
}

/** Describes the problem of the options in a sentence. */
function optionProblem(error: unknown, known: readonly string[]): string {
  const text = error instanceof Error ? error.message : String(error)
  const unknown = /^Unknown option '--?([^']+)'/.exec(text)?.[1]
  if (unknown !== undefined)
    return `no such option: --${unknown}${suggestion(unknown, known, '--')}; --help lists them`
  const missing = /^Option '--([a-z0-9-]+)[^']*' argument (missing|is ambiguous)/.exec(text)?.[1]
  if (missing !== undefined) return `--${missing} needs a value`
  const flag = /^Option '--([a-z0-9-]+)' does not take an argument/.exec(text)?.[1]
  if (flag !== undefined) return `--${flag} takes no value`
  const extra = /^Unexpected argument '([^']*)'/.exec(text)?.[1]
  return extra === undefined ? text : `unexpected: ${extra}`
}

/** Suggests a known word with the same beginning, or with one or two different letters. */
export function suggestion(given: string, known: readonly string[], prefix = ''): string {
  const begun = given.length > 1 ? known.filter((each) => each.startsWith(given)) : []
  const meant = begun.length === 1 ? begun[0] : nearestOf(given, known)
  return meant === undefined ? '' : `; did you mean ${prefix}${meant}?`
}

/** `--longitude -89.65` becomes `--longitude=-89.65`: a negative number is a value, not an option. */
const withNegatives = (args: readonly string[]): string[] =>
  args.reduce<string[]>((joined, arg) => {
    const before = joined.at(-1)
    if (/^-\.?\d/.test(arg) && before !== undefined && /^--[a-z][a-z0-9-]*$/.test(before))
      return [...joined.slice(0, -1), `${before}=${arg}`]
    return [...joined, arg]
  }, [])

/** What parts of the service work with, for a command that uses them. It runs no background turns. */
export const contextOf = (
  { db, settings }: Pick<Invocation, 'db' | 'settings'>,
  runtime: Runtime,
): CloudContext => ({
  db,
  runtime,
  log: silentLog,
  checkpoint: noCheckpoint,
  settings: settings.limits.rules,
  sealer: noSealer,
})

/** The actor of what operators do by commands. */
export const COMMAND_LINE = 'command line'

/** Writes an operator's action to the audit log. */
export const recordAct = (
  q: Queries,
  runtime: Runtime,
  { hubId = null, ...act }: Pick<AuditRecord, 'action' | 'object' | 'detail'> & { hubId?: number | null },
): Promise<void> => appendAudit(q, runtime, { actor: COMMAND_LINE, result: 'executed', hubId, ...act })

export function required(options: Options, name: string): string {
  const value = options[name]
  if (value === undefined || value.trim() === '') throw new UsageError(`--${name} is needed`)
  return value
}

/** The name in an option, as every entrance stores it. */
export const nameOf = (options: Options, name: string): string =>
  conform(nameText(200), required(options, name), `--${name}`)

/** The whole number of an option, within bounds. */
export function numberOf(options: Options, name: string, min: number, max: number): number | undefined {
  if (options[name] === undefined) return undefined
  const text = required(options, name)
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new UsageError(`--${name} must be a whole number from ${min} to ${max}: ${text}`)
}

/** `Date.parse` alone accepts almost any text that contains a number. */
const Time = z.union([z.iso.date(), z.iso.datetime({ offset: true, local: true })])

/** The time (ISO 8601) of an option, in milliseconds since the Unix epoch. */
export function timeOf(options: Options, name: string): number | undefined {
  const text = options[name]
  if (text === undefined) return undefined
  if (!Time.safeParse(text).success)
    throw new UsageError(`--${name} is not a time: ${text}; write it as 2026-01-31T08:00:00Z`)
  return Date.parse(text)
}

/** `*`, or hub ids separated by commas. */
export function hubsOf(options: Options): HubSelection {
  const text = required(options, 'hubs')
  if (text === '*') return '*'
  const parts = text.split(',').map((part) => part.trim())
  if (!parts.every((part) => /^[1-9]\d*$/.test(part)))
    throw new UsageError(`--hubs takes hub ids separated by commas, or "*": ${text}`)
  return [...new Set(parts.map(Number))]
}

/** The id that an option names. `whose`: "a hub's". Whether it exists, the command finds out. */
export function idOf(options: Options, name: string, whose: string): number {
  const text = required(options, name)
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new UsageError(`not ${whose} id: ${text}`)
}

/** The one hub that an option names. Throws if it does not exist. */
export async function hubOf({ q, options }: Pick<Invocation, 'q' | 'options'>): Promise<number> {
  const hubId = idOf(options, 'hub', "a hub's")
  await requireHubs(q, [hubId])
  return hubId
}

/** Refuses hubs that do not exist, or that are not the owner's. */
export async function requireHubs(q: Queries, hubs: HubSelection, ownerId?: number): Promise<void> {
  if (hubs === '*') return
  const rows = await q.selectFrom('hubs').select(['id', 'owner_id']).where('id', 'in', hubs).execute()
  const missing = hubs.filter(
    (hub) => !rows.some(({ id, owner_id }) => id === hub && (ownerId === undefined || owner_id === ownerId)),
  )
  if (missing.length > 0)
    throw new Error(`no such hub${ownerId === undefined ? '' : ' of this owner'}: ${missing.join(', ')}`)
}

/** The owner with a name. If no owner has that name, it may be the id of an owner. */
export async function findOwner(q: Queries, given: string): Promise<{ id: number; name: string }> {
  const owners = await q.selectFrom('owners').selectAll().orderBy('id').execute()
  const owner =
    owners.find(({ name }) => name === normalName(given)) ?? owners.find(({ id }) => String(id) === given)
  if (owner) return owner
  const known = owners.map(({ id, name }) => `${id} ${JSON.stringify(name)}`).join(', ') || 'none'
  throw new UsageError(
    `no owner ${JSON.stringify(given)}; there ${owners.length === 1 ? 'is' : 'are'}: ${known}`,
  )
}

/** Reads the file (JSON) that an option names. */
export function readJsonFile<T>(path: string, schema: z.ZodType<T>): T {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new UsageError(
      error instanceof SyntaxError
        ? `${path} is not valid JSON: ${error.message}`
        : `${path}: ${fileProblem(error)}`,
    )
  }
  return conform(schema, value, path)
}

/** Parses a value with a schema. Throws the first 20 problems in words. */
export function conform<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const problems = schemaProblems(result.error, value)
    .slice(0, 20)
    .map((problem) => problemText(problem, where))
  throw new UsageError(problems.join('; '))
}

/** Parses the options of a record's fields with its schema. Throws the problems in words, each with its option. */
export function conformOptions<T>(
  schema: z.ZodType<T>,
  options: Options,
  names: Readonly<Record<string, string>>,
): T {
  const given = Object.entries(names).flatMap(([field, option]) =>
    options[option] === undefined ? [] : [[field, options[option]]],
  )
  const value: unknown = Object.fromEntries(given)
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const problems = schemaProblems(result.error, value).map(
    ({ path: [field], words }) => `--${names[String(field)]}: ${words}`,
  )
  throw new UsageError(problems.join('; '))
}
