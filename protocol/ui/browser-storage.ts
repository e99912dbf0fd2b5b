/** `localStorage` or `sessionStorage`. */
export interface OpenStorage {
  readonly length: number
  key(index: number): string | null
  getItem(name: string): string | null
  setItem(name: string, text: string): void
  removeItem(name: string): void
}

/**
 * Texts of a page in the browser's storage. A browser may refuse its storage, or the storage may be full: such a text lasts
 * only while the page is open.
 */
export class BrowserStorage {
  /** Throws if the browser refuses its storage. */
  readonly #open: () => OpenStorage
  readonly #unstored = new Map<string, string>()

  constructor(open: () => OpenStorage) {
    this.#open = open
  }

  names(): string[] {
    const stored = this.#try((storage) =>
      Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? ''),
    )
    return [...new Set([...(stored ?? []), ...this.#unstored.keys()])]
  }

  getItem(name: string): string | null {
    return this.#unstored.get(name) ?? this.#try((storage) => storage.getItem(name)) ?? null
  }

  setItem(name: string, text: string): void {
    this.#unstored.set(name, text)
    this.#try((storage) => {
      storage.setItem(name, text)
      this.#unstored.delete(name)
    })
  }

  removeItem(name: string): void {
    this.#unstored.delete(name)
    this.#try((storage) => storage.removeItem(name))
  }

  #try<T>(work: (storage: OpenStorage) => T): T | undefined {
    try {
      return work(this.#open())
    } catch {
      return undefined
    }
  }
}
