import { invalid } from './objects.ts'

/** A form-encoded body or a query: `a[b]=1` is `{ a: { b: '1' } }`. Every value is text. */
export interface Params {
  [name: string]: string | Params
}

export function parseParams(encoded: string): Params {
  const params: Params = {}
  for (const [key, value] of new URLSearchParams(encoded)) {
    const [first, ...rest] = key.split(/[[\]]+/).filter((part) => part !== '')
    let target = params
    let name = first!
    for (const part of rest) {
      const inner = (target[name] ??= {})
      if (typeof inner === 'string') throw invalid(`Invalid parameter: ${key}`)
      target = inner
      name = part
    }
    target[name] = value
  }
  return params
}

/** Like Stripe, refuses a parameter that a call does not have. */
export function requireKnown(params: Params, known: readonly string[]): void {
  for (const name of Object.keys(params))
    if (!known.includes(name))
      throw invalid(`Received unknown parameter: ${name}`, { code: 'parameter_unknown', param: name })
}

/** A required value. */
export function textOf(params: Params, name: string): string {
  const value = params[name]
  if (typeof value !== 'string')
    throw invalid(`Missing required param: ${name}.`, { code: 'parameter_missing', param: name })
  return value
}
