import { z } from 'zod'

/** A description of an enumeration: its sentence, and a line for each value. */
export const valuesIn = <Value extends string | number>(
  sentence: string,
  values: Readonly<Record<Value, string>> | ReadonlyMap<Value, string>,
): string =>
  [
    sentence,
    ...(values instanceof Map ? [...values] : Object.entries(values)).map(
      ([value, meaning]) => `- \`${value}\`: ${meaning}`,
    ),
  ].join('\n')

/**
 * An enumeration as a named component of the OpenAPI document, with a sentence for it and for each of its values. The client's
 * types use the same name.
 */
export const namedEnum = <const Values extends Readonly<Record<string, string>>>(
  id: string,
  sentence: string,
  values: Values,
) => {
  type Name = keyof Values & string
  return z
    .enum(Object.keys(values) as [Name, ...Name[]])
    .meta({ id, description: valuesIn(sentence, values) })
}
