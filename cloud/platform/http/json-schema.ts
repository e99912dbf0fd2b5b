import { z } from 'zod'

export type JsonSchema = Record<string, unknown>

/** Turns zod schemas into JSON schemas. A schema with a name goes into `components` once; the others refer to it there. */
export interface SchemaWriter {
  write(schema: z.ZodType): JsonSchema
  components: Record<string, JsonSchema>
}

export function schemaWriter(): SchemaWriter {
  const components: Record<string, JsonSchema> = {}
  return {
    components,
    write(schema) {
      // As sent by a client: a field with a default may be absent.
      const json = z.toJSONSchema(schema, { io: 'input', override: ({ jsonSchema }) => plain(jsonSchema) })
      const { $schema: _, $defs, ...rest } = json
      for (const [name, definition] of Object.entries($defs ?? {}))
        components[name] = pointToComponents(definition) as JsonSchema
      return pointToComponents(rest) as JsonSchema
    },
  }
}

/** Leaves out what tells a reader nothing: the bounds of a double, and the regular expression of a format. */
function plain(json: z.core.JSONSchema.BaseSchema): void {
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum
  if (json.format !== undefined) delete json.pattern
}

function pointToComponents(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pointToComponents)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) =>
      key === '$ref' && typeof part === 'string'
        ? [key, part.replace('#/$defs/', '#/components/schemas/')]
        : [key, pointToComponents(part)],
    ),
  )
}

/** Values of fields by their names, used wherever the schema allows them. */
const byName: Readonly<Record<string, unknown>> = {
  upc: '012345678905',
  productUPC: '012345678905',
  email: 'ada@example.org',
  phone_number: '+15550100000',
  first_name: 'Ada',
  last_name: 'Lovelace',
  city: 'Springfield',
  state: 'IL',
  street_address_1: '1 Main Street',
  street_address_2: null,
  timezone: 'America/Chicago',
  currency: 'USD',
  image_url: 'https://larder.example/files/product.png',
  month: '2026-03',
  message: 'Done.',
  temperature: 4.5,
  price: 250,
  original_price: 250,
  discounted_price: 225,
  purchase_price: 120,
  unit_price: 250,
  quantity: 2,
  hub_status: 'active',
  display_text: '20 % off',
  locale: 'en-US',
  date_of_birth: '1990-12-10',
  payment_method_id: 'pm_card_visa',
  next_cursor: null,
  payment_status: 'completed',
  processing_status: 60,
  processing_status_name: 'COMPLETED',
}

const byFormat: Readonly<Record<string, string>> = {
  'date-time': '2026-03-01T12:00:00.000Z',
  date: '2026-03-01',
  uri: 'https://larder.example/',
  uuid: '0195517a-4c80-7000-8000-000000000000',
}

/**
 * An example of what a schema describes, for a route that gives none: it has every field, with values that suit the schema
 * and, where that allows it, the field's name.
 */
export function exampleOf(
  schema: JsonSchema,
  components: Readonly<Record<string, JsonSchema>>,
  name = '',
): unknown {
  const of = (part: unknown, key = name): unknown => exampleOf(part as JsonSchema, components, key)
  const { $ref, examples, allOf, enum: values } = schema
  if (typeof $ref === 'string') return of(components[$ref.split('/').at(-1)!])
  if (Array.isArray(examples)) return examples[0]
  if ('default' in schema) return schema['default']
  if ('const' in schema) return schema['const']
  if (Array.isArray(values)) return values.includes(byName[name]) ? byName[name] : values[0]
  const options = (schema['anyOf'] ?? schema['oneOf']) as JsonSchema[] | undefined
  if (options) {
    if (byName[name] === null && options.some(({ type }) => type === 'null')) return null
    return of(options.find(({ type }) => type !== 'null') ?? options[0])
  }
  if (Array.isArray(allOf)) return Object.assign({}, ...allOf.map((part) => of(part) as object)) as unknown
  switch ([schema['type']].flat().find((type) => type !== 'null')) {
    case 'object': {
      const fields = Object.entries(schema['properties'] ?? {}).map(([key, part]) => [key, of(part, key)])
      const others = schema['additionalProperties']
      const isMap = fields.length === 0 && typeof others === 'object' && others !== null
      return Object.fromEntries(isMap ? [['1', of(others)]] : fields) as unknown
    }
    case 'array': {
      const { prefixItems, items, minItems = 1 } = schema
      if (Array.isArray(prefixItems)) return prefixItems.map((part) => of(part))
      return items === undefined ? [] : Array.from({ length: Math.max(1, Number(minItems)) }, () => of(items))
    }
    case 'integer':
    case 'number':
      return numberExample(schema, byName[name])
    case 'string':
      if (typeof byName[name] === 'string') return byName[name]
      return byFormat[String(schema['format'])] ?? (name === '' ? 'text' : name.replaceAll('_', ' '))
    case 'boolean':
      return true
    default:
      return null
  }
}

function numberExample(schema: JsonSchema, suggested: unknown): number {
  const least = Number(schema['minimum'] ?? schema['exclusiveMinimum'] ?? 0)
  const most = Number(schema['maximum'] ?? Infinity)
  if (typeof suggested === 'number' && suggested >= least && suggested <= most) return suggested
  return Math.min(most, Math.max(1, least + ('exclusiveMinimum' in schema ? 1 : 0)))
}

/** A JSON schema in the notation of TypeScript, which is shorter to read: `{ id: integer, name?: string | null }`. */
export function schemaText(schema: JsonSchema, indent = ''): string {
  const { $ref, type, enum: values, prefixItems } = schema
  const textOf = (part: unknown): string => schemaText(part as JsonSchema, indent)
  if (typeof $ref === 'string') return $ref.split('/').at(-1)!
  if ('const' in schema) return JSON.stringify(schema['const'])
  if (Array.isArray(values)) return values.map((value) => JSON.stringify(value)).join(' | ')
  const options = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(options)) return options.map(textOf).join(' | ')
  if (Array.isArray(type)) return type.join(' | ')
  if (Array.isArray(prefixItems)) return `[${prefixItems.map(textOf).join(', ')}]`
  if (type === 'array') {
    const items = textOf(schema['items'])
    return items.includes(' | ') ? `(${items})[]` : `${items}[]`
  }
  if (type === 'object') return objectText(schema, indent)
  const limits = Object.entries(schema).filter(([key]) => key in limitNames)
  const words = limits.map(([key, value]) => `${limitNames[key]}${JSON.stringify(value)}`)
  return [typeof type === 'string' ? type : 'any', ...words].join(' ')
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

function objectText({ properties, required = [] }: JsonSchema, indent: string): string {
  if (!properties) return 'object'
  const inner = `${indent}  `
  const lines = Object.entries(properties).map(
    ([name, part]) =>
      `${inner}${name}${(required as string[]).includes(name) ? '' : '?'}: ${schemaText(part as JsonSchema, inner)}`,
  )
  return `{\n${lines.join('\n')}\n${indent}}`
}
