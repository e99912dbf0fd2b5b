import type { Result, Router } from 'hono/router'

/** A node of the path tree. */
interface Step<T> {
  words: Map<string, Step<T>>
  /** Matches any word. */
  parameter?: Step<T>
  /** Matches the rest of the path, slashes included. */
  rest?: Place<T>
  place: Place<T>
}

/** The handlers of a path by method. `ALL` serves the other methods. */
type Place<T> = Map<string, { handler: T; parameters: readonly string[] }>

const newStep = <T>(): Step<T> => ({ words: new Map(), place: new Map() })

/**
 * Finds the single handler of a path. A word has precedence over a parameter: `/deals/apply-reward` never matches
 * `/deals/{deal_id}`, even with a method that it does not have. Hono's own routers list every matching handler, and its
 * fast ones cannot handle a word and a parameter at the same place.
 */
export class PathRouter<T> implements Router<T> {
  readonly name = 'PathRouter'
  /** Complete paths without a parameter. */
  readonly #plain = new Map<string, Map<string, Result<T>>>()
  readonly #first = newStep<T>()

  add(method: string, path: string, handler: T): void {
    const parts = path.split('/').slice(1)
    const parameters = parts.flatMap((part) => /^:(\w+)/.exec(part)?.[1] ?? [])
    if (parameters.length === 0) {
      const place = this.#plain.get(path) ?? new Map<string, Result<T>>()
      this.#plain.set(path, place.set(method, [[[handler, {}]]]))
    } else this.#placeOf(parts).set(method, { handler, parameters })
  }

  match(method: string, path: string): Result<T> {
    const plain = this.#plain.get(path)
    if (plain) return plain.get(method) ?? plain.get('ALL') ?? [[]]
    const values: string[] = []
    const place = find(this.#first, path.split('/'), 1, values)
    const served = place?.get(method) ?? place?.get('ALL')
    if (served === undefined) return [[]]
    const params: Record<string, string> = {}
    for (const [index, name] of served.parameters.entries()) params[name] = values[index]!
    return [[[served.handler, params]]]
  }

  #placeOf(parts: readonly string[]): Place<T> {
    let step = this.#first
    for (const part of parts) {
      if (part.endsWith('{.+}')) return (step.rest ??= new Map())
      if (part.startsWith(':')) step = step.parameter ??= newStep()
      else {
        const next = step.words.get(part) ?? newStep<T>()
        step.words.set(part, next)
        step = next
      }
    }
    return step.place
  }
}

/** Matches the parts from `index` on. `values` are the parameter values so far. */
function find<T>(
  { words, parameter, rest, place }: Step<T>,
  parts: readonly string[],
  index: number,
  values: string[],
): Place<T> | undefined {
  if (index === parts.length) return place.size > 0 ? place : undefined
  const part = parts[index]!
  const word = words.get(part)
  const taken = values.length
  const byWord = word && find(word, parts, index + 1, values)
  if (byWord) return byWord
  if (parameter && part !== '') {
    values.push(part)
    const byParameter = find(parameter, parts, index + 1, values)
    if (byParameter) return byParameter
    values.length = taken
  }
  const left = rest && parts.slice(index).join('/')
  if (left === undefined || left === '') return undefined
  values.push(left)
  return rest
}
