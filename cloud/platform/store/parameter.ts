/** Stands for a value that is given with each run of a statement (`statement.ts`). */
export class Parameter {
  readonly name: string
  readonly #make: ((given: unknown) => unknown) | undefined

  constructor(name: string, make?: (given: unknown) => unknown) {
    this.name = name
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
  value instanceof Parameter ? new Parameter(value.name, make as (given: unknown) => unknown) : make(value)
