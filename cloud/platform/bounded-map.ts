/** What is kept to be quicker, and can be found again: it never holds more than `most`, and begins anew where it would. */
export class BoundedMap<V> {
  readonly #most: number
  readonly #known = new Map<string, V>()

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#known.size
  }

  get(key: string): V | undefined {
    return this.#known.get(key)
  }

  set(key: string, value: V): void {
    if (this.#known.size >= this.#most && !this.#known.has(key)) this.#known.clear()
    this.#known.set(key, value)
  }

  delete(key: string): void {
    this.#known.delete(key)
  }

  clear(): void {
    this.#known.clear()
  }
}
