import type { z } from 'zod'

/**
 * Differences between an answer and its schema: missing documented fields, and undocumented fields. Zod
 * ignores unknown keys and absent optional ones; `optional` names fields that may be absent.
 */
export function schemaDifferences(schema: z.ZodType, value: unknown, path = ''): string[] {
  const { def } = schema as z.core.$ZodType & { def: Def }
  switch (def.type) {
    case 'object': {
      const shape = def.shape as Record<string, z.ZodType>
      if (typeof value !== 'object' || value === null) return [`${path}: no object`]
      const unknown = Object.keys(value).filter((key) => !(key in shape))
      return [
        ...unknown.map((key) => `${path}.${key}: nobody documented it`),
        ...Object.entries(shape).flatMap(([key, field]) =>
          key in value
            ? schemaDifferences(field, (value as Record<string, unknown>)[key], `${path}.${key}`)
            : [],
        ),
      ]
    }
    case 'array':
      return Array.isArray(value)
        ? value.flatMap((item, index) =>
            schemaDifferences(def.element as z.ZodType, item, `${path}[${index}]`),
          )
        : [`${path}: no list`]
    case 'record':
      return Object.entries(value as Record<string, unknown>).flatMap(([key, item]) =>
        schemaDifferences(def.valueType as z.ZodType, item, `${path}.${key}`),
      )
    case 'union': {
      const found = (def.options as z.ZodType[]).map((option) => schemaDifferences(option, value, path))
      return found.find((list) => list.length === 0) ?? found[0] ?? []
    }
    case 'optional':
    case 'nullable':
    case 'default':
    case 'readonly':
      return value === null || value === undefined
        ? []
        : schemaDifferences(def.innerType as z.ZodType, value, path)
    default:
      return []
  }
}

interface Def {
  type: string
  shape?: unknown
  element?: unknown
  valueType?: unknown
  options?: unknown
  innerType?: unknown
}
