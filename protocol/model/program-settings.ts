import { DAY_MS } from './times.ts'
import { z } from 'zod'
import { bareHost } from './address.ts'
import { wrap } from './wrap.ts'

/**
 * A program is configured by environment variables, or by a JSON file with the same names (`--config FILE`). The
 * environment takes precedence. This is the pure part, shared by the tables of settings of all programs.
 */
export interface Setting<T extends z.ZodType = z.ZodType> {
  /** The name of the environment variable, if it differs from the key's: the key `idleOrderMs` has `IDLE_ORDER_MS`. */
  env?: string
  /** Parses the text of the value. Use `numberText` for numbers. */
  schema: T
  describe: string
  /** The heading in `--help`; by default the heading of its table. */
  group?: string
  /** A limit or detail with a sound default that few operators change: only `--help --all` lists it. */
  isLimit?: true
  /** Minimum and maximum. */
  bounds?: readonly [min: number, max: number]
  /** The default, in words. A setting without it is optional and may be undefined. */
  standard?: string
  required?: true
  /** Output never shows its value, because it is or contains a password. */
  secret?: true
  /** Factor from the unit of the text to the unit of the value: 86,400,000 for days that are stored as milliseconds. */
  unit?: number
}

/** Settings by their keys in the code, optionally in groups. Plain numbers are constants that only tests change. */
export interface SettingsTable {
  readonly [key: string]: Setting | SettingsTable | number
}

/** The values of a program's settings, in place of their declarations. */
export type SettingsOf<T extends SettingsTable> = {
  -readonly [K in keyof T]: T[K] extends { schema: infer S extends z.ZodType }
    ? z.output<S>
    : T[K] extends SettingsTable
      ? SettingsOf<T[K]>
      : number
}

export type SettingsResult<T extends SettingsTable> =
  | { ok: true; settings: SettingsOf<T>; byName: ReadonlyMap<string, unknown> }
  | { ok: false; problems: string[] }

/** A whole number written in digits, between `min` and `max`. */
export const numberText = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`)

type NumberSetting = Setting<z.ZodType<number>>

export const wholeNumber = (
  [min, max]: readonly [min: number, max: number],
  standard: number,
  describe: string,
): NumberSetting => ({
  schema: numberText(min, max),
  standard: String(standard),
  describe,
  bounds: [min, max],
})

/** At least a millisecond, at most a day or `maxMs`. */
export const duration = (standardMs: number, describe: string, maxMs = DAY_MS): NumberSetting =>
  wholeNumber([1, maxMs], standardMs, `${describe} In milliseconds.`)

/** The text is in days, the value in milliseconds. */
export const days = (env: string, standard: number, describe: string): NumberSetting => ({
  env,
  schema: numberText(1, 36_500).transform((value) => value * DAY_MS),
  standard: String(standard),
  describe: `${describe} In days.`,
  bounds: [1, 36_500],
  unit: DAY_MS,
})

export const port = (standard: number, describe: string, min = 0): NumberSetting =>
  wholeNumber([min, 65_535], standard, describe)

/** A non-empty text: a path, an address. */
export const text = (describe: string, standard?: string): Setting<z.ZodString> => ({
  schema: z.string().min(1),
  describe,
  ...(standard !== undefined && { standard }),
})

/** A host or an address, also with the brackets that URLs put around an IPv6 address. */
export const hostText = (describe: string, standard?: string): Setting<z.ZodType<string>> => ({
  schema: z.string().min(1).transform(bareHost),
  describe,
  ...(standard !== undefined && { standard }),
})

export const requiredText = (describe: string): Setting<z.ZodString> => ({
  ...text(describe),
  required: true,
})

export const optionalText = (
  describe: string,
  schema = z.string().min(1),
): Setting<z.ZodOptional<z.ZodString>> => ({
  schema: schema.optional(),
  describe,
})

export const oneOf = <const V extends readonly [string, ...string[]]>(
  values: V,
  standard: V[number],
  describe: string,
) => ({ schema: z.enum(values), standard, describe })

/** A setting with a name of its own, not that of its key. */
export const named = <S extends Setting>(env: string, setting: S): S => ({ ...setting, env })

/** Adds a common prefix to the names of settings. */
export const prefixed = <T extends Record<string, Setting | number>>(prefix: string, settings: T): T =>
  Object.fromEntries(
    Object.entries(settings).map(([key, setting]) => [
      key,
      typeof setting === 'number' ? setting : { env: `${prefix}_${nameOf(key, {})}`, ...setting },
    ]),
  ) as T

/** Settings under one heading of `--help`. */
export const inGroup = <T extends SettingsTable>(group: string, table: T): T => stamped(table, { group })

/** Limits under one heading of `--help --all`. A setting of the table with its own group is not a limit. */
export const limits = <T extends SettingsTable>(group: string, table: T): T =>
  stamped(table, { group, isLimit: true })

function stamped<T extends SettingsTable>(table: T, stamp: Pick<Setting, 'group' | 'isLimit'>): T {
  // A setting that occurs in several groups stays one object.
  const known = new Map<Setting, Setting>()
  const one = (setting: Setting): Setting => {
    if (setting.group !== undefined) return setting
    if (!known.has(setting)) known.set(setting, { ...setting, ...stamp })
    return known.get(setting)!
  }
  const all = (part: SettingsTable): SettingsTable =>
    Object.fromEntries(
      Object.entries(part).map(([key, entry]) => {
        if (typeof entry === 'number') return [key, entry]
        return [key, isSetting(entry) ? one(entry) : all(entry)]
      }),
    )
  return all(table) as T
}

const nameOf = (key: string, { env }: Pick<Setting, 'env'>): string =>
  env ?? (/[a-z]/.test(key) ? key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase() : key)

const isSetting = (entry: SettingsTable[string]): entry is Setting =>
  typeof entry === 'object' && 'schema' in entry

/**
 * Every setting of a table and of its groups, by name. A setting may occur in several groups; two different ones must
 * not share a name.
 */
export function settingsIn(table: SettingsTable): Map<string, Setting> {
  const found = new Map<string, Setting>()
  for (const [key, entry] of Object.entries(table)) {
    if (typeof entry === 'number') continue
    for (const [name, setting] of isSetting(entry)
      ? [[nameOf(key, entry), entry] as const]
      : settingsIn(entry)) {
      if ((found.get(name) ?? setting) !== setting) throw new Error(`two settings are called ${name}`)
      found.set(name, setting)
    }
  }
  return found
}

/**
 * Reads all settings and reports every invalid one. Empty variables count as not set. `between`: values that are used where
 * the environment has none, before those of the file. `isPart`: the table is a part of the program's, so the file may contain
 * other settings.
 */
export function readSettings<T extends SettingsTable>(
  table: T,
  environment: Readonly<Record<string, string | undefined>>,
  file?: SettingsFile,
  between: Readonly<Record<string, string>> = {},
): SettingsResult<T> {
  const problems: string[] = []
  const declared = settingsIn(table)
  const fromFile = file ? readFile(file, declared, problems) : {}
  const byName = new Map<string, unknown>()
  for (const [name, { schema, standard, required, describe }] of declared) {
    const text = environment[name] || between[name] || fromFile[name] || standard
    if (required && text === undefined) {
      problems.push(`${name} is not set: ${describe}`)
      continue
    }
    const result = (text === undefined ? schema.optional() : schema).safeParse(text)
    if (result.success) byName.set(name, result.data)
    else {
      const where = environment[name] ? 'environment' : (file?.path ?? 'environment')
      problems.push(`${name} (${where}): ${result.error.issues.map(({ message }) => message).join('; ')}`)
    }
  }
  if (problems.length > 0) return { ok: false, problems }
  return { ok: true, settings: valuesIn(table, byName) as SettingsOf<T>, byName }
}

function valuesIn(table: SettingsTable, byName: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const value = (key: string, entry: SettingsTable[string]): unknown => {
    if (typeof entry === 'number') return entry
    return isSetting(entry) ? byName.get(nameOf(key, entry)) : valuesIn(entry, byName)
  }
  return Object.fromEntries(Object.entries(table).map(([key, entry]) => [key, value(key, entry)]))
}

/** The settings with all defaults. Throws if a setting is required. */
export function defaultsOf<T extends SettingsTable>(table: T): SettingsOf<T> {
  const result = readSettings(table, {})
  if (!result.ok) throw new Error(result.problems.join('; '))
  return result.settings
}

/** Settings for diagnostics, in the units of their texts: without secrets, and without addresses that may contain a password. */
export type Shown = Record<string, string | number | boolean>

export const shownSettings = (table: SettingsTable, values: ReadonlyMap<string, unknown>): Shown =>
  Object.fromEntries(
    [...settingsIn(table)].flatMap(([name, { secret, unit = 1 }]): [string, Shown[string]][] => {
      const value = values.get(name)
      if (secret || value === undefined) return []
      if (typeof value === 'number') return [[name, value / unit]]
      if (Array.isArray(value)) return [[name, value.join(',')]]
      return [[name, typeof value === 'object' ? JSON.stringify(value) : (value as Shown[string])]]
    }),
  )

interface SettingsFile {
  path: string
  text: string
  isPart?: boolean
}

const FileSettings = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))

function readFile(
  { path, text, isPart }: SettingsFile,
  declared: ReadonlyMap<string, Setting>,
  problems: string[],
): Record<string, string> {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    problems.push(`${path}: not valid JSON (${error instanceof Error ? error.message : 'malformed'})`)
    return {}
  }
  const values = FileSettings.safeParse(json)
  if (!values.success) {
    problems.push(`${path}: must be an object of names and values`)
    return {}
  }
  for (const name of Object.keys(values.data))
    if (!declared.has(name) && !isPart) problems.push(`${name} (${path}): no such setting; --help lists them`)
  return Object.fromEntries(Object.entries(values.data).map(([name, value]) => [name, String(value)]))
}

/** Width of the text of `--help`, in columns. */
const HELP_WIDTH = 100

/** The text of `--help`: the usage, and the settings under their headings. `all`: also the limits. */
export function helpText(usage: string, table: SettingsTable, all = false): string {
  const sections = new Map<string, Map<string, string>>()
  const hidden = new Set<string>()
  for (const [name, setting, heading] of listed(table, 'Service')) {
    if (setting.isLimit && !all) hidden.add(name)
    const title = `${setting.isLimit ? 'Limits and details' : 'Settings'}: ${setting.group ?? heading}`
    if (!hidden.has(name))
      sections.set(title, (sections.get(title) ?? new Map()).set(name, linesOf(name, setting)))
  }
  const titles = [...sections.keys()].toSorted(
    (a, b) => Number(a.startsWith('L')) - Number(b.startsWith('L')),
  )
  return [
    usage,
    '',
    '--version prints the version and ends.',
    '',
    'Settings, from the environment or from a JSON file of the same names (--config FILE):',
    ...titles.flatMap((title) => ['', title, ...sections.get(title)!.values()]),
    ...(hidden.size > 0
      ? ['', `--help --all also lists ${hidden.size} limits and details with sound defaults.`]
      : []),
    '',
  ].join('\n')
}

function linesOf(name: string, { describe, standard, required, bounds }: Setting): string {
  const range = bounds === undefined ? '' : `, ${bounds[0]} to ${bounds[1]}`
  const text = !standard ? describe : `${describe} Default: ${standard}${range}`
  return `  ${name}${required ? ' (required)' : ''}\n${wrap(text, HELP_WIDTH, '      ')}`
}

/** Every setting with its name and the heading of its table. */
function* listed(table: SettingsTable, heading: string): Generator<[string, Setting, string]> {
  for (const [key, entry] of Object.entries(table))
    if (typeof entry === 'object' && isSetting(entry)) yield [nameOf(key, entry), entry, heading]
  for (const [key, entry] of Object.entries(table))
    if (typeof entry === 'object' && !isSetting(entry)) yield* listed(entry, headingOf(key))
}

/** `storageReports` becomes `Storage reports`. */
const headingOf = (key: string): string => {
  const words = key.replaceAll(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}
