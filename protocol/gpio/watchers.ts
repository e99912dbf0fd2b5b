import type { Cancel } from '../model/runtime.ts'

/** The listeners to the edges of lines, by the lines' names. */
export class Watchers {
  readonly #listeners = new Map<string, Set<() => void>>()

  add(name: string, listener: () => void): Cancel {
    const all = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, all.add(listener))
    return () => void all.delete(listener)
  }

  notify(name: string): void {
    for (const listener of this.#listeners.get(name) ?? []) listener()
  }
}
