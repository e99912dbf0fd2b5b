import { z } from 'zod'

export type JsonSchema = Record<string, unknown>

/** Turns zod schemas into JSON schemas; what has a name goes into `components` once and is referred to. */
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

/** Leaves out what says nothing to a reader: the bounds of what a double can hold, and formats as expressions. */
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
