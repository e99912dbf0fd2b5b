/** Placeholder for a value that each run of a statement supplies (`statement.ts`). */
export class Parameter {
  readonly name: string
  /** For a list: the number of places in the text compiled for its length. Undefined: any length. */
  readonly places: number | undefined
  readonly #make: ((given: unknown) => unknown) | undefined

  constructor(name: string, places?: number, make?: (given: unknown) => unknown) {
    this.name = name
    this.places = places
    this.#make = make
  }

  /** The parameter's value among all values of a run. */
  of(given: object): unknown {
    const value = given[this.name as keyof typeof given] as unknown
    return this.#make ? this.#make(value) : value
  }
}

/** Converts a value now, or at each run if it is a placeholder. */
export const made = <T>(value: T, make: (given: T) => unknown): unknown =>
  value instanceof Parameter
    ? new Parameter(value.name, value.places, make as (given: unknown) => unknown)
    : make(value)

/** Lists up to this length have their own texts. */
const SHORT = 8

/**
 * The number of places for a list of this length: the next power of two, undefined beyond `SHORT`. A statement thus has
 * few texts, and the server plans each once for a realistic number of rows. For a list of unknown length the server
 * expects many more rows. It then scans the table instead of using the index, or plans again at each run.
 */
export const placesFor = (length: number): number | undefined =>
  length > SHORT ? undefined : 2 ** Math.ceil(Math.log2(Math.max(1, length)))

/** The number of places of a given list, or of a list placeholder. */
export const placesOf = (list: readonly unknown[] | Parameter): number | undefined =>
  list instanceof Parameter ? list.places : placesFor(list.length)
