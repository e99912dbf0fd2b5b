import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { ErrorBody } from '../../protocol/contract/errors.ts'
import type { Route } from '../../protocol/contract/route.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { named, nameOf, nameParts, schemaWriter, type JsonSchema } from '../platform/http/json-schema.ts'

/**
 * Makes the client's package, ready for `npm pack`: `protocol/client` compiled, with generated API types in
 * place of the table of routes. Compiling it this way proves that it needs none of our other code, only a
 * browser's types.
 */
export function buildClient(root: string, out: string): void {
  const source = join(root, 'protocol/client')
  const work = mkdtempSync(join(tmpdir(), 'larder-client-'))
  try {
    for (const name of readdirSync(source).filter((each) => each.endsWith('.ts')))
      copyFileSync(join(source, name), join(work, name))
    writeFileSync(join(work, 'api.ts'), clientTypes())
    rmSync(out, { recursive: true, force: true })
    mkdirSync(out, { recursive: true })
    compile(root, work, out, { removeComments: true })
    compile(root, work, out, { declaration: true, emitDeclarationOnly: true })
    // The compiled declarations are longer than the generated text.
    writeFileSync(join(out, 'api.d.ts'), clientTypes())
    // These files contain only types, so their compiled form is empty.
    for (const name of ['api.js', 'types.js']) rmSync(join(out, name))
    for (const name of ['README.md', '../LICENSE'])
      copyFileSync(join(source, name), join(out, name.replace('../', '')))
    writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifestOf(root), null, 2)}\n`)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function compile(root: string, work: string, out: string, options: object): void {
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    types: [],
    rootDir: work,
    outDir: out,
    rewriteRelativeImportExtensions: true,
    verbatimModuleSyntax: true,
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    ...options,
  }
  const config = join(work, 'tsconfig.json')
  writeFileSync(config, JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['--project', config], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}

function manifestOf(root: string) {
  const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string
    license: string
  }
  return {
    name: '@larder/client',
    version,
    license,
    description: 'The client of Larder’s HTTP interface, for browsers, Node and workers',
    type: 'module',
    sideEffects: false,
    exports: { '.': { types: './client.d.ts', default: './client.js' } },
  }
}

/**
 * The API's types, generated from its table of routes. They equal the types that `protocol/client/api.ts`
 * infers, for callers who have neither the table nor its schema library.
 */
function clientTypes(): string {
  const writer = schemaWriter()
  const write = (schema: z.ZodType): string => typeOf(writer.write(schema))
  /** Bodies and answers have the names of the OpenAPI document. */
  const writeNamed = (name: string, schema: z.ZodType): string =>
    typeOf(named(name, writer.write(schema), writer.components))
  const endpoints = Object.entries<Route>(routes)
    .filter(
      ([, { interface: side, produces }]) =>
        side !== 'root' && (produces ?? 'text/event-stream') === 'text/event-stream',
    )
    .map(([id, route]) => {
      const { method, path, summary, params, query, body, form, response, produces, message } = route
      const parts = Object.entries({ params, query, message })
        .filter(([, schema]) => schema !== undefined)
        .map(([name, schema]) => `${name}: ${write(schema!)}`)
      if (body) parts.push(`body: ${writeNamed(`${nameOf(id)}Body`, body)}`)
      if (form) parts.push('form: true')
      const answer =
        route.status === 204
          ? 'undefined'
          : produces === undefined
            ? writeNamed(`${nameOf(id)}Answer`, response)
            : 'unknown'
      return `  /** ${summary} */\n  '${method} ${path}': { ${[...parts, `answer: ${answer}`].join('; ')} }`
    })
  writer.write(ErrorBody)
  nameParts(writer.components)
  const components = Object.entries(writer.components).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)}`,
  )
  return `${components.join('\n')}
interface Endpoints {
${endpoints.join('\n')}
}
type Part<T, Name> = Name extends keyof T ? T[Name] : undefined
/** Every endpoint by its method and path, as the document has them. */
export type Api = {
  [E in keyof Endpoints]: {
    [Name in 'params' | 'query' | 'body' | 'form' | 'answer' | 'message']: Part<Endpoints[E], Name>
  }
}
/** One problem that a 422 reports. */
export type Problem = Exclude<ErrorBody['detail'], string>[number]
`
}

/** A JSON schema as a type. */
function typeOf(schema: JsonSchema): string {
  const { $ref, type, enum: values, prefixItems, items, additionalProperties: others } = schema
  const of = (part: unknown): string => typeOf(part as JsonSchema)
  const union = (types: string[]): string => [...new Set(types)].join(' | ')
  if (typeof $ref === 'string') return $ref.split('/').at(-1)!
  if ('const' in schema) return JSON.stringify(schema['const'])
  if (Array.isArray(values)) return union(values.map((value) => JSON.stringify(value)))
  const options = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(options)) return union(options.map(of))
  if (Array.isArray(schema['allOf'])) return schema['allOf'].map((part) => `(${of(part)})`).join(' & ')
  if (Array.isArray(type)) return union(type.map((each) => of({ ...schema, type: each as string })))
  if (Array.isArray(prefixItems)) return `[${prefixItems.map(of).join(', ')}]`
  if (type === 'array') return listOf(of(items ?? {}))
  if (type === 'integer') return 'number'
  if (type !== 'object') return typeof type === 'string' ? type : 'unknown'
  if (schema['properties'] === undefined)
    return `Record<string, ${typeof others === 'object' && others !== null ? of(others) : 'unknown'}>`
  return objectOf(schema)
}

const listOf = (item: string): string => (/[ {]/.test(item) ? `(${item})[]` : `${item}[]`)

function objectOf({ properties, required = [] }: JsonSchema): string {
  const fields = Object.entries(properties as Record<string, JsonSchema>).map(
    ([name, part]) => `${name}${(required as string[]).includes(name) ? '' : '?'}: ${typeOf(part)}`,
  )
  return `{ ${fields.join('; ')} }`
}
