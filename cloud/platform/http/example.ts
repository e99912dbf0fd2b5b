import type { JsonSchema } from './json-schema.ts'

/** What fields of such names look like, wherever their schemas allow it. */
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
 * An example of what a schema describes, where a route gives none of its own: every field is there, with a value that its
 * schema and its name suggest.
 */
export function exampleOf(
  schema: JsonSchema,
  components: Readonly<Record<string, JsonSchema>>,
  name = '',
): unknown {
  const of = (part: unknown, key = name): unknown => exampleOf(part as JsonSchema, components, key)
  const { $ref, examples, anyOf, oneOf, allOf } = schema as Record<string, unknown>
  if (typeof $ref === 'string') return of(components[$ref.split('/').at(-1)!]!)
  if (Array.isArray(examples)) return examples[0]
  if ('default' in schema) return schema['default']
  if ('const' in schema) return schema['const']
  if (Array.isArray(schema['enum'])) {
    const values = schema['enum'] as unknown[]
    return values.includes(byName[name]) ? byName[name] : values[0]
  }
  const options = (anyOf ?? oneOf) as JsonSchema[] | undefined
  if (options) {
    if (byName[name] === null && options.some(({ type }) => type === 'null')) return null
    return of(options.find(({ type }) => type !== 'null') ?? options[0])
  }
  if (Array.isArray(allOf)) return Object.assign({}, ...allOf.map((part) => of(part) as object)) as unknown
  return plainExample(schema, name, of)
}

function plainExample(
  schema: JsonSchema,
  name: string,
  of: (part: unknown, key?: string) => unknown,
): unknown {
  const types = [schema['type']].flat()
  switch (types.find((type) => type !== 'null')) {
    case 'object': {
      const properties = (schema['properties'] ?? {}) as Record<string, unknown>
      const fields = Object.entries(properties).map(([key, part]) => [key, of(part, key)])
      const others = schema['additionalProperties']
      const isMap = fields.length === 0 && typeof others === 'object' && others !== null
      return Object.fromEntries(isMap ? [['1', of(others, name)]] : fields) as unknown
    }
    case 'array': {
      const prefix = schema['prefixItems'] as unknown[] | undefined
      if (prefix) return prefix.map((part) => of(part))
      const count = Math.max(1, Number(schema['minItems'] ?? 1))
      return schema['items'] === undefined
        ? []
        : Array.from({ length: count }, () => of(schema['items'], name))
    }
    case 'integer':
    case 'number':
      return numberExample(schema, name)
    case 'string':
      return stringExample(schema, name)
    case 'boolean':
      return true
    default:
      return null
  }
}

function numberExample(schema: JsonSchema, name: string): number {
  const least = Number(schema['minimum'] ?? schema['exclusiveMinimum'] ?? 0)
  const most = Number(schema['maximum'] ?? Infinity)
  const suggested = byName[name]
  if (typeof suggested === 'number' && suggested >= least && suggested <= most) return suggested
  return Math.min(most, Math.max(1, least + ('exclusiveMinimum' in schema ? 1 : 0)))
}

function stringExample(schema: JsonSchema, name: string): string {
  const suggested = byName[name]
  if (typeof suggested === 'string') return suggested
  const format = byFormat[String(schema['format'])]
  return format ?? (name === '' ? 'text' : name.replaceAll('_', ' '))
}
