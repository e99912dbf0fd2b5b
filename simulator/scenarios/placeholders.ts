/**
 * `${name}` in the texts of a step. If the text is only the name, the value replaces it unchanged: a number stays a
 * number.
 */

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

const WHOLE = /^\$\{([^}]*)\}$/
const PART = /\$\{([^}]*)\}/g

/** The distinct names in a value. */
export function namesIn(value: Json): string[] {
  const names = new Set<string>()
  map(value, (text) => {
    for (const [, name] of text.matchAll(PART)) names.add(name!)
    return text
  })
  return [...names]
}

export function fill(value: Json, values: ReadonlyMap<string, Json>): Json {
  return map(value, (text) => {
    const whole = WHOLE.exec(text)?.[1]
    if (whole !== undefined) return values.get(whole) ?? text
    return text.replaceAll(PART, (found, name: string) => {
      const value = values.get(name) ?? found
      return typeof value === 'object' ? JSON.stringify(value) : String(value)
    })
  })
}

function map(value: Json, change: (text: string) => Json): Json {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((each) => map(each, change))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, map(each, change)]))
}
