import type { JsonSchema } from './json-schema.ts'

/** A JSON schema in the notation of TypeScript, which is shorter to read: `{ id: integer, name?: string | null }`. */
export function schemaText(schema: JsonSchema, indent = ''): string {
  if (typeof schema['$ref'] === 'string') return schema['$ref'].split('/').at(-1)!
  if ('const' in schema) return JSON.stringify(schema['const'])
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => JSON.stringify(value)).join(' | ')
  const alternatives = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(alternatives))
    return alternatives.map((part) => schemaText(part as JsonSchema, indent)).join(' | ')
  if (Array.isArray(schema['type'])) return schema['type'].join(' | ')
  if (Array.isArray(schema['prefixItems']))
    return `[${schema['prefixItems'].map((part) => schemaText(part as JsonSchema, indent)).join(', ')}]`
  if (schema['type'] === 'array') {
    const items = schemaText(schema['items'] as JsonSchema, indent)
    return items.includes(' | ') ? `(${items})[]` : `${items}[]`
  }
  if (schema['type'] === 'object') return objectText(schema, indent)
  const type = typeof schema['type'] === 'string' ? schema['type'] : 'any'
  const limits = Object.entries(schema).filter(([key]) => key in limitNames)
  return [type, ...limits.map(([key, value]) => `${limitNames[key]}${JSON.stringify(value)}`)].join(' ')
}

const limitNames: Record<string, string> = {
  minimum: '≥ ',
  maximum: '≤ ',
  minLength: 'length ≥ ',
  maxLength: 'length ≤ ',
  pattern: 'matching ',
  format: 'format ',
  default: 'default ',
}

function objectText(schema: JsonSchema, indent: string): string {
  const properties = schema['properties'] as Record<string, JsonSchema> | undefined
  if (!properties) return 'object'
  const required = Array.isArray(schema['required']) ? (schema['required'] as string[]) : []
  const inner = `${indent}  `
  const lines = Object.entries(properties).map(
    ([name, part]) => `${inner}${name}${required.includes(name) ? '' : '?'}: ${schemaText(part, inner)}`,
  )
  return `{\n${lines.join('\n')}\n${indent}}`
}
