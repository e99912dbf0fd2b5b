import { z } from 'zod'

export type JsonSchema = Record<string, unknown>

/** Converts zod schemas to JSON schemas. A named schema is written to `components` once, and others refer to it. */
export interface SchemaWriter {
  write(schema: z.ZodType): JsonSchema
  /** A schema of a request: its text excludes NUL. */
  request(schema: z.ZodType): JsonSchema
  components: Record<string, JsonSchema>
}

/** The name of a route's component: `consumer.orders.list` → `ConsumerOrdersList`. */
export const nameOf = (id: string): string =>
  id.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Makes a component of an unnamed object, or of a list's items. Returns the reference. */
export function named(
  name: string,
  schema: JsonSchema,
  components: Record<string, JsonSchema>,
  description?: string,
): JsonSchema {
  const { items } = schema
  if (schema['type'] === 'array' && typeof items === 'object')
    return { ...schema, items: named(`${name}Item`, items as JsonSchema, components, description) }
  if (schema['properties'] === undefined && schema['oneOf'] === undefined) return schema
  components[name] = { ...(description !== undefined && { description }), ...schema }
  return referTo(name)
}

const referTo = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

/**
 * Makes a component of every object and enumeration inside the components, named by its place: `Order.deals[]` →
 * `OrderDealsItem`. Gives each property its description, with its default.
 */
export function nameParts(components: Record<string, JsonSchema>): void {
  const pending = Object.keys(components)
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    const schema = components[name]!
    // Alternatives of one object that differ only in their required fields are no separate types.
    const { oneOf, ...rest } = schema
    const whole = partsOf(rest, name, (partName, part) => {
      components[partName] ??= part
      pending.push(partName)
      return referTo(partName)
    })
    components[name] = oneOf === undefined ? whole : { ...whole, oneOf }
  }
  for (const schema of Object.values(components)) describeProperties(schema, components)
}

type Register = (name: string, part: JsonSchema) => JsonSchema

/** The schema, with references instead of the objects and enumerations inside it. */
function partsOf(schema: JsonSchema, name: string, register: Register): JsonSchema {
  const part = (value: unknown, partName: string): unknown => {
    if (typeof value !== 'object' || value === null) return value
    const inner = value as JsonSchema
    if (!('properties' in inner) && !Array.isArray(inner['enum'])) return partsOf(inner, partName, register)
    const { description, default: standard, ...rest } = inner
    const described = description === undefined ? {} : { description }
    return {
      ...described,
      ...(standard !== undefined && { default: standard }),
      ...register(partName, { description: `A part of \`${name}\`.`, ...described, ...rest }),
    }
  }
  const result: JsonSchema = { ...schema }
  const { properties, items, additionalProperties } = schema
  if (properties)
    result['properties'] = Object.fromEntries(
      Object.entries(properties).map(([key, value]) => [key, part(value, `${name}${nameOf(key)}`)]),
    )
  if (items !== undefined) result['items'] = part(items, `${name}Item`)
  if (additionalProperties !== undefined)
    result['additionalProperties'] = part(additionalProperties, `${name}Value`)
  for (const key of ['anyOf', 'oneOf', 'allOf', 'prefixItems']) {
    const choices = schema[key] as JsonSchema[] | undefined
    const isOneOfMany = (choices ?? []).filter(({ type }) => type !== 'null').length > 1
    if (choices)
      result[key] = choices.map((choice, index) => part(choice, isOneOfMany ? `${name}${index + 1}` : name))
  }
  return result
}

/**
 * Gives each property of an object, at any depth, the description of its own schema or of the component that it refers
 * to.
 */
function describeProperties(schema: JsonSchema, components: Readonly<Record<string, JsonSchema>>): void {
  for (const value of Object.values((schema['properties'] as Record<string, JsonSchema> | undefined) ?? {})) {
    const description = sentenceOf(value, components)
    if (description !== undefined) value['description'] = description
  }
  for (const key of ['anyOf', 'oneOf', 'allOf'] as const)
    for (const choice of (schema[key] as JsonSchema[] | undefined) ?? [])
      describeProperties(choice, components)
}

/** The description of a field, or of the component that it refers to, with its default. */
export function sentenceOf(
  schema: JsonSchema,
  components: Readonly<Record<string, JsonSchema>>,
): string | undefined {
  const own = ownSentence(schema, components)
  const standard = schema['default']
  const hasNoDefault = standard === undefined || standard === null || Array.isArray(standard)
  if (own === undefined || hasNoDefault) return own
  const text = typeof standard === 'string' ? standard : JSON.stringify(standard)
  return own.includes('Default: ') ? own : `${own} Default: \`${text}\`.`
}

function ownSentence(
  { description, $ref, anyOf }: JsonSchema,
  components: Readonly<Record<string, JsonSchema>>,
): string | undefined {
  if (typeof description === 'string') return description
  if (typeof $ref === 'string') {
    const whole = components[$ref.split('/').at(-1)!]?.['description']
    return typeof whole === 'string' ? whole.split('\n')[0] : undefined
  }
  const choices = (anyOf as JsonSchema[] | undefined)?.filter(({ type }) => type !== 'null')
  return choices?.length === 1 ? ownSentence(choices[0]!, components) : undefined
}

export function schemaWriter(): SchemaWriter {
  const components: Record<string, JsonSchema> = {}
  /** Names of components that callers send. If answers contain such a component too, it is described as in requests. */
  const sent = new Set<string>()
  const write = (schema: z.ZodType, isSent: boolean): JsonSchema => {
    // As sent by a client: a field with a default may be absent.
    const json = z.toJSONSchema(schema, { io: 'input', override: ({ jsonSchema }) => plain(jsonSchema) })
    const { $schema: _, $defs, ...rest } = json
    const withReferences = (part: JsonSchema) =>
      pointToComponents(isSent ? withText(part) : part) as JsonSchema
    for (const [name, definition] of Object.entries($defs ?? {})) {
      if (isSent) sent.add(name)
      if (isSent || !sent.has(name)) components[name] = withReferences(definition)
    }
    return withReferences(rest)
  }
  return {
    components,
    write: (schema) => write(schema, false),
    request: (schema) => write(schema, true),
  }
}

/**
 * Text must not contain NUL (`validate.ts`). This applies to free text and to negated character classes of patterns.
 */
const NUL = '\\u0000'

function withText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withText)
  if (typeof value !== 'object' || value === null) return value
  const result = Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key,
      valueKeys.has(key) ? (part as unknown) : withText(part),
    ]),
  )
  const { type, pattern = '^[^]*$' } = result
  if (type !== 'string' || ['format', 'enum', 'const'].some((key) => key in result)) return result
  return { ...result, pattern: String(pattern).replaceAll('[^', `[^${NUL}`) }
}

/** Keywords whose values are no schemas. */
const valueKeys = new Set(['enum', 'const', 'default', 'examples', 'required'])

/**
 * Removes details that do not help a reader (a double's bounds, a format's regular expression). Writes numeric
 * enumerations and tuples in a form that all tools understand.
 */
function plain(json: z.core.JSONSchema.BaseSchema): void {
  if (json.minimum === Number.MIN_SAFE_INTEGER) {
    delete json.minimum
    if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum
  }
  if (json.format !== undefined) delete json.pattern
  if (json.type === 'number' && [...(json.enum ?? []), json.const ?? 0].every(Number.isInteger))
    if (json.enum !== undefined || json.const !== undefined) json.type = 'integer'
  if (json.anyOf) delete json.enum
  if (json.type === undefined && json.enum) {
    // Numbers or words: generators create one type of each.
    const words = json.enum.filter((value) => typeof value === 'string')
    const numbers = json.enum.filter((value) => typeof value === 'number')
    json.anyOf = [
      { type: 'integer', enum: numbers },
      { type: 'string', enum: words },
    ]
    delete json.enum
  }
  if (json.oneOf && json.properties) {
    // Alternatives that contain only `required` have no fields that a generator could make a type of.
    const { properties, required = [], additionalProperties, oneOf } = json
    const choices = oneOf.map((each) => each.required ?? [])
    for (const key of ['type', 'properties', 'required', 'additionalProperties'] as const) delete json[key]
    json.oneOf = choices.map((chosen) => {
      const others = new Set(choices.flat().filter((name) => !chosen.includes(name)))
      const own = Object.entries(properties).filter(([name]) => !others.has(name))
      return {
        type: 'object',
        properties: Object.fromEntries(own),
        required: [...required, ...chosen],
        additionalProperties: additionalProperties ?? true,
      }
    })
  }
  const { prefixItems } = json
  if (!prefixItems) return
  json.minItems = json.maxItems = prefixItems.length
  const kinds = new Set(prefixItems.map((item) => JSON.stringify(item)))
  if (kinds.size > 1) {
    // For readers that do not support positional item schemas.
    json.items = { anyOf: [...kinds].map((kind) => JSON.parse(kind) as z.core.JSONSchema.BaseSchema) }
    return
  }
  json.items = prefixItems[0]!
  delete json.prefixItems
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

/** Example values by field name, used if the schema allows them. */
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
  profile_image_url: 'https://larder.example/files/ada.png',
  display_image: 'https://larder.example/files/banner.png',
  mime_type: 'image/png',
  identity_id: 'user-7',
  payment_id: 'pi_9f86d081884c7d659a2feaa0',
  client_secret: 'pi_9f86d081884c7d659a2feaa0_secret_d1e2',
  decline_code: null,
  task_id: 'task_1',
  event_id: '0195517a-4c80-7000-8000-000000000000',
  device_id: 'phone-1',
  app_version: '2.4.1',
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
  payment_method_id: 'pm_9f86d081884c7d659a2feaa0',
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
 * An example of a schema, for a route without its own. It has every field, with values that match the schema and, if
 * possible, the field's name.
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
