/** A cache of at most `most` entries. It evicts the oldest entry first. */
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
    this.#known.delete(key)
    this.#known.set(key, value)
    if (this.#known.size > this.#most) this.#known.delete(this.#known.keys().next().value!)
  }

  delete(key: string): void {
    this.#known.delete(key)
  }

  clear(): void {
    this.#known.clear()
  }
}
