import { z } from 'zod'
import { ErrorBody } from '../../protocol/contract/errors.ts'
import type { Route } from '../../protocol/contract/route.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { named, nameOf, nameParts, schemaWriter, type JsonSchema } from '../platform/http/json-schema.ts'

/**
 * The API's types, generated from its table of routes. They equal the types that `protocol/client/api.ts`
 * infers, for callers who have neither the table nor its schema library.
 */
export function clientTypes(): string {
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
