import { z } from 'zod'

/**
 * How a program is configured: by environment variables, or by a JSON file with the same names (`--config FILE`); the
 * environment wins. This is the pure part, shared by the programs' own tables of settings.
 */
export interface Setting<T extends z.ZodType = z.ZodType> {
  /** Of the value's text. Numbers are read with `numberText`. */
  schema: T
  describe: string
  /** What holds where it is not set, in words. A setting without it may be left out and is then undefined. */
  standard?: string
  /** It must be set. */
  required?: true
  /** Its value is never shown, or may have a password in it. */
  secret?: true
}

export type SettingsTable = Record<string, Setting>
export type SettingsOf<T extends SettingsTable> = { [K in keyof T]: z.output<T[K]['schema']> }

export type SettingsResult<T extends SettingsTable> =
  { ok: true; settings: SettingsOf<T> } | { ok: false; problems: string[] }

/** A whole number written in digits, between `min` and `max`. */
export const numberText = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`)

const FileSettings = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))

/** Reads all settings, and names every one that is wrong. Empty variables count as not set. */
export function readSettings<T extends SettingsTable>(
  table: T,
  environment: Readonly<Record<string, string | undefined>>,
  file?: { path: string; text: string },
): SettingsResult<T> {
  const problems: string[] = []
  const fromFile = file ? readFile(file, table, problems) : {}
  const settings: Record<string, unknown> = {}
  for (const [name, { schema, standard, required }] of Object.entries(table)) {
    const text = environment[name] || fromFile[name] || standard
    if (required && text === undefined) {
      problems.push(`${name} is not set: ${table[name]!.describe}`)
      continue
    }
    const result = (text === undefined ? schema.optional() : schema).safeParse(text)
    if (result.success) settings[name] = result.data
    else {
      const where = environment[name] ? 'environment' : (file?.path ?? 'environment')
      problems.push(`${name} (${where}): ${result.error.issues.map(({ message }) => message).join('; ')}`)
    }
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, settings: settings as SettingsOf<T> }
}

function readFile(
  { path, text }: { path: string; text: string },
  table: SettingsTable,
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
    if (!(name in table)) problems.push(`${name} (${path}): no such setting; --help lists them`)
  return Object.fromEntries(Object.entries(values.data).map(([name, value]) => [name, String(value)]))
}

/** The text of `--help`. */
export function helpText(usage: string, table: SettingsTable): string {
  const lines = Object.entries(table).map(
    ([name, { describe, standard, required }]) =>
      `  ${name}${required ? ' (required)' : ''}\n      ${describe}${standard === undefined ? '' : ` Default: ${standard}`}`,
  )
  return [
    usage,
    '',
    'Settings, from the environment or from a JSON file of the same names (--config FILE):',
    ...lines,
    '',
  ].join('\n')
}
