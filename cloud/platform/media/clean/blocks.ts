const EMPTY = Buffer.alloc(0)

/**
 * The bytes of a file as they arrive, and the bytes that are kept. A parser is a generator that yields only when it needs the
 * next block: within a block it works without a pause, and runs of bytes that stay are passed on as one.
 */
export class Blocks {
  /** Bytes that a parser has not handled yet begin at `at`. A parser may change them: the block is the cleaner's own. */
  block: Buffer = EMPTY
  at = 0
  /** No further block comes. */
  ended = false
  /** Where `at` is in the file. */
  offset = 0
  /** The bytes from here to `at` stay as they are. */
  #keptFrom = 0
  #kept: Buffer[] = []

  /** How many bytes are here and not handled. */
  get left(): number {
    return this.block.length - this.at
  }

  /** Adds a block behind what is left of the one before. */
  add(block: Buffer): void {
    this.block = this.left === 0 ? block : Buffer.concat([this.block.subarray(this.at), block])
    this.at = 0
    this.#keptFrom = 0
  }

  /** The bytes that were kept since the last call. */
  take(): Buffer {
    this.#flush()
    const [first = EMPTY, ...others] = this.#kept
    this.#kept = []
    return others.length === 0 ? first : Buffer.concat([first, ...others])
  }

  /** Waits until `length` bytes are here; false if the file ends before. */
  *has(length: number): Generator<void, boolean> {
    while (this.left < length && !this.ended) yield
    return this.left >= length
  }

  /** Keeps bytes that are here. */
  keep(length: number): void {
    this.at += length
    this.offset += length
  }

  /** Leaves out bytes that are here. */
  drop(length: number): void {
    this.#flush()
    this.keep(length)
    this.#keptFrom = this.at
  }

  /** Puts bytes of our own into what is kept. */
  insert(bytes: Buffer): void {
    this.#flush()
    this.#kept.push(bytes)
  }

  /** Keeps the next `length` bytes of the file, or all of them up to its end. */
  pass(length: number): Generator<void> {
    return this.#each(length, (part) => this.keep(part))
  }

  /** Leaves out the next `length` bytes. */
  skip(length: number): Generator<void> {
    return this.#each(length, (part) => this.drop(part))
  }

  /** Keeps as many zeros as there are next bytes: the length stays. */
  blank(length: number): Generator<void> {
    return this.#each(length, (part) => {
      this.block.fill(0, this.at, this.at + part)
      this.keep(part)
    })
  }

  *#each(length: number, handle: (part: number) => void): Generator<void> {
    for (let rest = length; rest > 0;) {
      if (this.left === 0) {
        if (this.ended) return
        yield
        continue
      }
      const part = Math.min(rest, this.left)
      handle(part)
      rest -= part
    }
  }

  #flush(): void {
    if (this.at > this.#keptFrom) this.#kept.push(this.block.subarray(this.#keptFrom, this.at))
    this.#keptFrom = this.at
  }
}
