import type { ImageSize } from '../image-size.ts'

const EMPTY = Buffer.alloc(0)

/**
 * The bytes of a file as they arrive, and the bytes that are kept. A parser is a generator that yields only when it
 * needs the next block. It does not pause within a block, and it passes on a run of kept bytes at once.
 */
export class Blocks {
  /** Unprocessed bytes start at `at`. A parser may change them, because the cleaner owns the block. */
  block: Buffer = EMPTY
  at = 0
  /** Whether the last block has arrived. */
  ended = false
  /** The position of `at` in the file. */
  offset = 0
  /** The bytes from here to `at` stay unchanged. */
  #keptFrom = 0
  #kept: Buffer[] = []

  /** Number of unprocessed bytes in the block. */
  get left(): number {
    return this.block.length - this.at
  }

  /** Appends a block to the rest of the previous one. */
  add(block: Buffer): void {
    this.block = this.left === 0 ? block : Buffer.concat([this.block.subarray(this.at), block])
    this.at = 0
    this.#keptFrom = 0
  }

  /** The bytes kept since the last call. */
  take(): Buffer {
    this.#flush()
    const [first = EMPTY, ...others] = this.#kept
    this.#kept = []
    return others.length === 0 ? first : Buffer.concat([first, ...others])
  }

  /** Copies the unprocessed bytes, so that the caller can use the block's memory again. Call it after `take`. */
  leaveBlock(): void {
    this.block = Buffer.from(this.block.subarray(this.at))
    this.at = 0
    this.#keptFrom = 0
  }

  /** Waits until `length` bytes have arrived; false if the file ends before. */
  *has(length: number): Generator<void, boolean> {
    while (this.left < length && !this.ended) yield
    return this.left >= length
  }

  /** Keeps the next bytes of the block. */
  keep(length: number): void {
    this.at += length
    this.offset += length
  }

  /** Removes the next bytes of the block. */
  drop(length: number): void {
    this.#flush()
    this.keep(length)
    this.#keptFrom = this.at
  }

  /** Adds new bytes to the kept ones. */
  insert(bytes: Buffer): void {
    this.#flush()
    this.#kept.push(bytes)
  }

  /** Keeps the next `length` bytes of the file, or all bytes until its end. */
  pass(length: number): Generator<void> {
    return this.#each(length, (part) => this.keep(part))
  }

  /** Removes the next `length` bytes. */
  skip(length: number): Generator<void> {
    return this.#each(length, (part) => this.drop(part))
  }

  /** Replaces the next bytes by zeros, so that the length stays constant. */
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

/** Limits of a file's structure. A limit of bytes is not enough, because the work also grows with the structure. */
export interface CleaningLimits {
  /** Segments, chunks, blocks, frames or boxes. */
  parts: number
  /** Width times height of an image. */
  pixels: number
  /** Processor time for one file, in milliseconds. */
  processorMs: number
}

/** Why a file is refused. `structure`: it violates its format, or has too many parts. */
export type Refusal = { kind: 'structure'; reason: string } | { kind: 'pixels'; size: ImageSize }

export class RefusedFile extends Error {
  override readonly name = 'RefusedFile'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal.kind === 'structure' ? refusal.reason : 'too many pixels')
    this.refusal = refusal
  }
}

/** The input and output of a parser. */
export class Parts extends Blocks {
  readonly #limits: CleaningLimits
  #count = 0
  #hasSize = false

  constructor(limits: CleaningLimits) {
    super()
    this.#limits = limits
  }

  refuse(reason: string): never {
    throw new RefusedFile({ kind: 'structure', reason })
  }

  /** Counts a part of the file. */
  count(): void {
    this.#count += 1
    if (this.#count > this.#limits.parts)
      this.refuse(`it has more than ${this.#limits.parts} segments, chunks, blocks or boxes`)
  }

  /** Reports the size of the image. */
  hasSize(size: ImageSize | undefined): void {
    if (!size) return
    if (size.width * size.height > this.#limits.pixels) throw new RefusedFile({ kind: 'pixels', size })
    this.#hasSize = true
  }

  requireSize(): void {
    if (!this.#hasSize) this.refuse('it does not say how large its image is')
  }
}
