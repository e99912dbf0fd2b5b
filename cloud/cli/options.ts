import { readFileSync, statSync } from 'node:fs'
import { z } from 'zod'
import { nameText, normalName } from '../../protocol/model/name-text.ts'
import { problemText, schemaProblems } from '../../protocol/model/schema-problems.ts'
import { fileProblem } from '../../protocol/model/system-error.ts'
import type { HubSelection } from '../platform/credentials/api-keys.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Queries } from '../platform/store/database.ts'
import type { Invocation, Options } from './command-line.ts'

export function required(options: Options, name: string): string {
  const value = options[name]
  if (value === undefined || value.trim() === '') throw new UsageError(`--${name} is needed`)
  return value
}

/** The name in an option, normalised as everywhere else. */
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

/** The id that an option names. `whose`: "a hub's". The command itself checks whether it exists. */
export function idOf(options: Options, name: string, whose: string): number {
  const text = required(options, name)
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
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
export function readJsonFile<T>(path: string, schema: z.ZodType<T>, maxBytes = Infinity): T {
  let value: unknown
  try {
    if (statSync(path).size > maxBytes) throw new UsageError(`${path} has more than ${maxBytes} bytes`)
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(
      error instanceof SyntaxError
        ? `${path} is not valid JSON: ${error.message}`
        : `${path}: ${fileProblem(error)}`,
    )
  }
  return conform(schema, value, path)
}

/** Parses a value with a schema. Throws an error that lists the first 20 problems. */
export function conform<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const problems = schemaProblems(result.error, value)
    .slice(0, 20)
    .map((problem) => problemText(problem, where))
  throw new UsageError(problems.join('; '))
}

/**
 * Parses the options of a record's fields with its schema. Throws an error that lists each problem with its
 * option.
 */
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
