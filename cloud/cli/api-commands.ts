import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { z } from 'zod'
import {
  createClient,
  unwrap,
  LarderError,
  type Call,
  type Failure,
  type Result,
} from '../../protocol/client/client.ts'
import type { Route } from '../../protocol/contract/route.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { helpText, inGroup, optionalText, readSettings } from '../../protocol/model/program-settings.ts'
import { progressOn } from '../../protocol/model/progress.ts'
import { schemaProblems } from '../../protocol/model/schema-problems.ts'
import { fileProblem } from '../../protocol/model/system-error.ts'
import { wrap } from '../../protocol/model/wrap.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { CommandLine, Options, Subcommand, WithoutStore } from './command-line.ts'

/** Service and credentials of the commands that the table of routes declares. */
const apiSettings = inGroup('Service', {
  LARDER_URL: {
    schema: z
      .string()
      .regex(/^https?:\/\/[^/\s]/, 'must be an http(s) address')
      .optional(),
    describe:
      'Address of the service, without /api/v1 (also --url). Default: the running demo, else this machine.',
  },
  LARDER_API_KEY: {
    ...optionalText(
      'API key for calls of owners and diagnostics (also --api-key). Default: the key of the running demo.',
    ),
    secret: true,
  },
  LARDER_TOKEN: {
    ...optionalText('Identity token, for customers, and for owners with a role (also --token).'),
    secret: true,
  },
})
const credentials = ['url', 'api-key', 'token']

type Place = 'params' | 'query' | 'body' | 'form' | 'file'
/** One value of a call: a parameter of the path or the query, a field of the body or the form, or a file. */
interface Field {
  place: Place
  name: string
  option: string
  schema?: z.ZodType
  isNeeded: boolean
  about: string
}
interface ApiCommand {
  noun: string
  verb: string
  endpoint: string
  route: Route
}

const dashed = (name: string): string => name.replaceAll('_', '-')

/** `owner.orders.refund_item` is `orders refund-item`; customers' calls are `customer-orders …`. */
function commandOf([id, route]: [string, Route]): ApiCommand {
  const parts = id.split('.')
  const noun = parts.at(parts.length > 2 ? 1 : 0)!
  return {
    noun: dashed(route.interface === 'consumer' ? `customer-${noun}` : noun),
    verb: dashed(parts.at(-1)!),
    endpoint: `${route.method} ${route.path}`,
    route,
  }
}

/** Every call that the client can make. Pages, files and the demo's routes are for browsers. */
const commands = (Object.entries(routes) as [string, Route][])
  .filter(([id]) => !/^(root|demo)\./.test(id))
  .filter(([, { produces }]) => produces === undefined || produces === 'text/event-stream')
  .map(commandOf)

export const apiNouns: readonly string[] = [...new Set(commands.map(({ noun }) => noun))]

/** The commands of a noun, or undefined if no route has it. */
export function apiCommands(noun: string): CommandLine | undefined {
  const own = commands.filter((command) => command.noun === noun)
  if (own.length === 0) return undefined
  const lines = own.map((command) => `  ${usageOf(command)}\n${wrap(command.route.summary, 100, '      ')}`)
  return {
    usage: `Calls of the service, which need its address and a credential:\n${lines.join('\n')}`,
    subcommands: Object.fromEntries(own.map((command) => [command.verb, subcommandOf(command)])),
    settings: apiSettings,
  }
}

/** All values that a route takes, parameters of the path first. */
function fieldsOf({ params, query, body, form }: Route): Field[] {
  const of = (place: Place, object: z.ZodObject | undefined): Field[] =>
    Object.entries((object?.shape ?? {}) as Record<string, z.ZodType>).map(([name, schema]) => ({
      place,
      name,
      option: dashed(name),
      schema,
      isNeeded: !schema.safeParse(undefined).success,
      about: aboutOf(schema),
    }))
  const files = Object.entries(form?.files ?? {}).map(
    ([name, { required = false, maxFiles = 1 }]): Field => ({
      place: 'file',
      name,
      option: dashed(name),
      isNeeded: required,
      about: maxFiles === 1 ? 'Path of a file.' : `Paths of at most ${maxFiles} files, separated by commas.`,
    }),
  )
  return [
    ...of('params', params),
    ...of('query', query),
    ...of('body', body),
    ...of('form', form?.fields),
    ...files,
  ]
}

/** The description of a schema, or of the schema that it wraps. */
function aboutOf(schema: z.ZodType): string {
  if (schema.description !== undefined) return schema.description
  const { def } = schema as { def: { innerType?: z.ZodType } }
  return def.innerType === undefined ? '' : aboutOf(def.innerType)
}

const isPaged = ({ query }: Route): boolean =>
  ['cursor', 'after', 'page', 'offset'].some((name) => name in ((query?.shape ?? {}) as object))
const hasCsv = ({ alsoProduces }: Route): boolean => alsoProduces === 'text/csv'
/** Options of a route in addition to its parameters and fields, and what `--help` prints. */
const flagsOf = (route: Route): Record<string, string> => ({
  ...(isPaged(route) && { all: 'Reads all pages of the list.' }),
  ...(hasCsv(route) && { csv: 'Prints all matching rows as CSV, as they arrive.' }),
})
const isStream = ({ produces }: Route): boolean => produces === 'text/event-stream'

/** The kind of value that an option takes. */
function kindOf(schema: z.ZodType | undefined): string {
  if (schema === undefined) return 'FILE'
  const accepts = (value: unknown): boolean => schema.safeParse(value).success
  if (accepts(true)) return 'true|false'
  return accepts(1) || accepts(100) ? 'N' : accepts({}) ? 'JSON' : 'TEXT'
}

function usageOf({ noun, verb, route }: ApiCommand): string {
  const words = fieldsOf(route).map(({ place, name, option, schema, isNeeded }) => {
    if (place === 'params') return name.toUpperCase()
    const text = `--${option} ${kindOf(schema)}`
    return isNeeded ? text : `[${text}]`
  })
  const flags = Object.keys(flagsOf(route)).map((flag) => `[--${flag}]`)
  return [`larder ${noun} ${verb}`, ...words, ...flags].join(' ')
}

function helpOf(command: ApiCommand): string {
  const { endpoint, route } = command
  const fields = fieldsOf(route).map(
    ({ place, name, option, isNeeded, about }) =>
      `  ${place === 'params' ? name.toUpperCase() : `--${option}`}${isNeeded ? ' (required)' : ''}\n${wrap(about, 100, '      ')}`,
  )
  const usage = [
    wrap(`Usage: ${usageOf(command)}`, 100),
    '',
    wrap([`${route.summary}.`, route.description ?? ''].join(' ').trim(), 100),
    '',
    ...(fields.length > 0 ? [...fields, ''] : []),
    ...Object.entries(flagsOf(route)).flatMap(([flag, about]) => [`  --${flag}\n      ${about}`, '']),
    ...(route.errors === undefined ? [] : [wrap(`Errors: ${route.errors.join(', ')}.`, 100), '']),
    'A list is written a,b,c. An object is JSON, or @FILE with JSON.',
    `Calls ${endpoint}. A failed call has exit status 1.`,
  ]
  return helpText(usage.join('\n'), apiSettings).replace(
    ' or from a JSON file of the same names (--config FILE)',
    '',
  )
}

function subcommandOf(command: ApiCommand): Subcommand {
  const { route } = command
  const fields = fieldsOf(route)
  return {
    store: 'none',
    options: [
      ...fields.filter(({ place }) => place !== 'params').map(({ option }) => option),
      ...credentials,
    ],
    flags: Object.keys(flagsOf(route)),
    positionals: fields.filter(({ place }) => place === 'params').map(({ name }) => name),
    help: () => helpOf(command),
    isFailure: (output) => FailureAnswer.safeParse(output).success,
    run: (invocation) => run(command, invocation),
  }
}

/** The client of this package for endpoints that are known only at run time. */
interface AnyClient {
  call(endpoint: string, input: Call): Promise<Result<unknown>>
  items(endpoint: string, input: Call): AsyncIterable<unknown>
  csv(endpoint: string, input: Call): AsyncIterable<string>
  live(endpoint: string, input: Call & Pick<Openings, 'onFailure'>): AsyncIterable<unknown>
}

/** Failures that a success status reports: of controls over SSH, and of bins that did not all open. */
const FailureAnswer = z.union([
  z.object({ success: z.literal(false) }),
  z.object({ result: z.object({ success: z.literal(false) }) }),
])

/** Notes about a stream that cannot be opened: one per reason, until the stream is open. */
interface Openings {
  onFailure: (failure: Failure) => void
  onMessage: () => void
}

function openings({ terminal }: WithoutStore, url: string): Openings {
  let noted = ''
  return {
    onFailure: (failure) => {
      const text = failureText(failure, url)
      if (text !== noted) terminal.warn?.(`${text}; the command tries again\n`)
      noted = text
    },
    onMessage: () => void (noted = ''),
  }
}

async function run({ endpoint, route }: ApiCommand, invocation: WithoutStore): Promise<unknown> {
  const { options, terminal, runtime } = invocation
  const input: Call = { ...readCall(route, options), signal: terminal.signal }
  const access = accessOf(route, invocation)
  const client = createClient(access) as unknown as AnyClient
  try {
    if (isStream(route)) {
      const { onFailure, onMessage } = openings(invocation, access.baseUrl)
      for await (const message of client.live(endpoint, { ...input, onFailure })) {
        onMessage()
        terminal.print(`${JSON.stringify(message)}\n`)
      }
      return undefined
    }
    if (options['csv'] !== undefined) {
      for await (const rows of client.csv(endpoint, input)) terminal.print(rows)
      return undefined
    }
    if (options['all'] === undefined) return unwrap(await client.call(endpoint, input)) ?? { done: true }
    const progress = progressOn(process.stderr, runtime.clock)
    const items: unknown[] = []
    try {
      for await (const item of client.items(endpoint, input)) progress.show(`${items.push(item)} records`)
    } finally {
      progress.clear()
    }
    return items
  } catch (error) {
    throw error instanceof LarderError
      ? new Error(failureText(error.failure, access.baseUrl), { cause: error })
      : error
  }
}

/** Describes a failed call: code, message, details, and each field that the service refused. */
function failureText(
  { code, message, status, problems = [], details, requestId }: Failure,
  url: string,
): string {
  if (status === 0) return `${url} does not answer (${code}: ${message}); LARDER_URL names the service`
  const fields = problems.map(({ loc, msg }) => `--${dashed(String(loc.at(-1)))}: ${msg}`)
  const more = details === undefined ? '' : ` ${JSON.stringify(details)}`
  return `${code}: ${fields.length > 0 ? fields.join('; ') : message}${more}${requestId === undefined ? '' : ` (${requestId})`}`
}

/** Reads and checks the values of a call. Throws a `UsageError` that names each wrong or missing option. */
function readCall(route: Route, options: Options): Call {
  const fields = fieldsOf(route)
  const problems: string[] = []
  const valuesOf = (place: Place, schema: z.ZodObject | undefined): Record<string, unknown> | undefined => {
    if (schema === undefined) return undefined
    const own = fields.filter((field) => field.place === place)
    const textOf = ({ name, option }: Field) => options[place === 'params' ? name : option]
    const value = Object.fromEntries(
      own
        .filter((field) => textOf(field) !== undefined)
        .map((field) => [field.name, valueOf(field, textOf(field)!)]),
    )
    const result = schema.safeParse(value)
    if (!result.success)
      for (const { path, words } of schemaProblems(result.error, value)) {
        const [name, ...inner] = path.map(String)
        const option = place === 'params' ? name!.toUpperCase() : `--${dashed(name ?? 'body')}`
        problems.push(`${[option, ...inner].join('.')}: ${words}`)
      }
    return value
  }
  const params = valuesOf('params', route.params)
  const query = valuesOf('query', route.query)
  const body = valuesOf('body', route.body)
  const texts = valuesOf('form', route.form?.fields)
  for (const { place, option, isNeeded } of fields)
    if (place === 'file' && isNeeded && options[option] === undefined)
      problems.push(`--${option}: is missing`)
  if (problems.length > 0) throw new UsageError(problems.join('; '))
  return {
    ...(params && { params }),
    ...(query && { query }),
    ...(body && !(route.bodyOptional && Object.keys(body).length === 0) && { body }),
    ...(texts && { form: formOf(texts, fields, options) }),
  }
}

/** The first reading of a text that a field accepts: as text, as JSON, or as a list. */
function valueOf({ schema, option }: Field, text: string): unknown {
  const written = text.startsWith('@') ? readText(option, text.slice(1)) : text
  const parts = text.split(',').map((part) => part.trim())
  const readings = [written, jsonOf(written), parts, parts.map(jsonOf)]
  const accepted = readings.find((reading) => schema!.safeParse(reading).success)
  return accepted ?? (typeof jsonOf(written) === 'object' || /^-?[\d.]+$/.test(text) ? jsonOf(written) : text)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function readText(option: string, path: string): string {
  return readFileOf(option, path).toString('utf8')
}

function readFileOf(option: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new UsageError(`--${option}: ${path}: ${fileProblem(error)}`)
  }
}

function formOf(texts: Record<string, unknown>, fields: readonly Field[], options: Options): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(texts))
    form.append(name, typeof value === 'string' ? value : JSON.stringify(value))
  for (const { name, option } of fields.filter(({ place }) => place === 'file'))
    for (const path of options[option]?.split(',') ?? [])
      form.append(name, new Blob([new Uint8Array(readFileOf(option, path))]), basename(path))
  return form
}

const Demo = z.object({
  base_url: z.string(),
  owner: z.object({ api_key: z.string() }),
  diag: z.object({ api_key: z.string() }),
})

/** The URL and the credential of a call: options, then the environment, then the running demo. */
function accessOf({ auth }: Route, { options, environment, settings }: WithoutStore) {
  const read = readSettings(apiSettings, environment)
  if (!read.ok) throw new UsageError(read.problems.join('; '))
  const { LARDER_URL, LARDER_API_KEY, LARDER_TOKEN } = read.settings
  const url = options['url'] ?? LARDER_URL
  const demo = url === undefined ? demoAt(join(settings.DATA_DIR, '..', 'demo.json')) : undefined
  const baseUrl = url ?? demo?.base_url ?? `http://127.0.0.1:${settings.PORT}`
  const token = options['token'] ?? LARDER_TOKEN
  const isKeyed = auth.kind === 'api' || auth.kind === 'diag'
  const demoKey = auth.kind === 'diag' ? demo?.diag.api_key : demo?.owner.api_key
  const apiKey = isKeyed
    ? (options['api-key'] ?? LARDER_API_KEY ?? (token === undefined ? demoKey : undefined))
    : undefined
  if (isKeyed && apiKey === undefined && token === undefined)
    throw new UsageError('a key is needed: LARDER_API_KEY or --api-key (larder keys create makes one)')
  if (['user', 'identity'].includes(auth.kind) && token === undefined)
    throw new UsageError('an identity token is needed: LARDER_TOKEN or --token')
  return { baseUrl, ...(apiKey !== undefined && { apiKey }), ...(token !== undefined && { token }) }
}

function demoAt(path: string): z.infer<typeof Demo> | undefined {
  try {
    return Demo.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return undefined
  }
}
