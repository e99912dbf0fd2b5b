import type { OpenApiDocument, Operation } from '../../cloud/platform/http/openapi.ts'

type Schema = Record<string, unknown>

/**
 * All parts of a description that callers rely on, one line each: `POST /users/payments/pay > body.order_id!:
 * integer`. `!` marks required parts. A component is listed once, under its name. If `known` excludes its
 * name, its content is listed at each use: naming a part does not change the wire.
 */
export function reliedOn(document: OpenApiDocument, known?: ReadonlySet<string>): string[] {
  const lines: string[] = []
  const linesOf = (name: string, schema: Schema): string[] =>
    partsIn(name, schema, (component) =>
      known === undefined || known.has(component) ? undefined : document.components.schemas[component],
    )
  for (const [path, item] of Object.entries(document.paths))
    for (const [method, value] of Object.entries(item)) {
      const operation = value as Operation
      if (operation['x-same-as'] !== undefined) continue
      const name = `${method.toUpperCase()} ${path}`
      lines.push(name)
      for (const { name: parameter, in: place, required, schema } of operation.parameters ?? [])
        lines.push(...linesOf(`${name} > ${place}.${parameter}${required ? '!' : ''}`, schema))
      for (const content of Object.values(operation.requestBody?.content ?? {}))
        lines.push(...linesOf(`${name} > body`, content.schema))
      for (const [status, { content = {} }] of Object.entries(operation.responses)) {
        if (status >= '300') continue
        lines.push(`${name} < ${status}`)
        for (const { schema } of Object.values(content))
          lines.push(...linesOf(`${name} < ${status}.body`, schema))
      }
    }
  for (const [name, schema] of Object.entries(document.components.schemas))
    lines.push(...linesOf(name, schema))
  return [...new Set(lines)].sort()
}

/** Formats lines as a file: the parts of an endpoint or a component follow it, indented. */
export function written(lines: readonly string[]): string {
  let owner = ''
  const shown = lines.flatMap((line) => {
    const [own = ''] = /^([A-Z]+ \S+|\w+)/.exec(line) ?? []
    const part = line.slice(own.length)
    const head = own === owner ? [] : [own]
    owner = own
    return part === '' ? head : [...head, ` ${part}`]
  })
  return `${shown.join('\n')}\n`
}

export function read(text: string): string[] {
  let owner = ''
  return text
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      if (line.startsWith(' ')) return [owner + line.slice(1)]
      owner = line
      return isEndpoint(line) ? [line] : []
    })
}

const isEndpoint = (line: string): boolean => /^[A-Z]+ \S+$/.test(line)

/** Names of the components in a list of lines. */
export const componentsIn = (lines: readonly string[]): Set<string> =>
  new Set(lines.flatMap((line) => /^(\w+)[.:[]/.exec(line)?.[1] ?? []))

/**
 * `contentOf` returns the schema of a component that is listed at its place, and undefined for one with lines
 * of its own.
 */
function partsIn(
  name: string,
  schema: Schema,
  contentOf: (component: string) => Schema | undefined,
): string[] {
  const linesOf = (part: string, inner: Schema): string[] => partsIn(part, inner, contentOf)
  const parts = (schema['anyOf'] ?? schema['oneOf']) as Schema[] | undefined
  if (parts) return parts.flatMap((part) => linesOf(name, part))
  if (schema['type'] === 'array' && typeof schema['items'] === 'object')
    return linesOf(`${name}[]`, schema['items'] as Schema)
  const properties = schema['properties'] as Record<string, Schema> | undefined
  if (properties) {
    const required = new Set(schema['required'] as string[] | undefined)
    return Object.entries(properties).flatMap(([key, part]) =>
      linesOf(`${name}.${key}${required.has(key) ? '!' : ''}`, part),
    )
  }
  if (typeof schema['$ref'] === 'string') {
    const component = schema['$ref'].split('/').at(-1)!
    const content = contentOf(component)
    return content ? linesOf(name, content) : [`${name}: ${component}`]
  }
  const values = schema['enum'] ?? ('const' in schema ? [schema['const']] : undefined)
  if (Array.isArray(values)) return values.map((value) => `${name}: ${JSON.stringify(value)}`)
  const types = [schema['type'] ?? 'any'].flat() as string[]
  return types.map((type) => `${name}: ${type}`)
}

/**
 * Changes that break a caller: a part that is missing, or a newly required part. Additions break no caller
 * (`CHANGELOG.md`).
 */
export function breaks(before: readonly string[], now: readonly string[]): string[] {
  const [had, has] = [new Set(before), new Set(now)]
  const sent = componentsSent(before)
  const isSent = (line: string): boolean => / > /.test(line) || sent.has(line.split('.')[0]!)
  /** A required part that became optional. */
  const isLoosened = (line: string): boolean =>
    isSent(line) &&
    [...line.matchAll(/!/g)].some(({ index }) => has.has(line.slice(0, index) + line.slice(index + 1)))
  /** A value that is now part of a named enumeration. */
  const isNamed = (line: string): boolean => {
    const [, place, value] = /^(.*): ("[^"]*"|\d+)$/.exec(line) ?? []
    return now.some(
      (other) =>
        place !== undefined &&
        other.startsWith(`${place}: `) &&
        has.has(`${other.slice(place.length + 2)}: ${value}`),
    )
  }
  const gone = before.filter((line) => !has.has(line) && !isLoosened(line) && !isNamed(line))
  const asked = now.filter((line) => {
    if (had.has(line) || !isAsked(line)) return false
    const [owner = ''] = line.split(/ > |\./)
    // A new endpoint may require anything.
    return had.has(owner) || sent.has(owner)
  })
  return [...gone, ...asked]
}

const isAsked = (line: string): boolean => /^(\w+\.|[A-Z]+ \S+ > )[^:]*!(\[\])?:/.test(line)

/** Components that callers send. */
const componentsSent = (lines: readonly string[]): Set<string> =>
  new Set(lines.flatMap((line) => / > body: (\w+)$/.exec(line)?.[1] ?? []))
