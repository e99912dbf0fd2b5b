/** Stands for a value that is given with each run of a statement (`statement.ts`). */
export class Parameter {
  readonly name: string
  /** Of a list: how many places a text has that is compiled for lists of its length; undefined where any number may come. */
  readonly places: number | undefined
  readonly #make: ((given: unknown) => unknown) | undefined

  constructor(name: string, places?: number, make?: (given: unknown) => unknown) {
    this.name = name
    this.places = places
    this.#make = make
  }

  /** The value of a run, of all that it is given. */
  of(given: object): unknown {
    const value = given[this.name as keyof typeof given] as unknown
    return this.#make ? this.#make(value) : value
  }
}

/** What is made of a value: of each run's own where it is a stand-in. */
export const made = <T>(value: T, make: (given: T) => unknown): unknown =>
  value instanceof Parameter
    ? new Parameter(value.name, value.places, make as (given: unknown) => unknown)
    : make(value)

/** Lists up to this long have texts of their own. */
const SHORT = 8

/**
 * How many places there are for a list of so many: the next power of two, undefined beyond `SHORT`. So a statement has a few
 * texts, and a server plans each once, for as many rows as there are: of a list of unknown length it expects many more, and
 * would rather read a table than use its index, or plan anew each time.
 */
export const placesFor = (length: number): number | undefined =>
  length > SHORT ? undefined : 2 ** Math.ceil(Math.log2(Math.max(1, length)))

/** The same of a list that is given, or that a stand-in is for. */
export const placesOf = (list: readonly unknown[] | Parameter): number | undefined =>
  list instanceof Parameter ? list.places : placesFor(list.length)
