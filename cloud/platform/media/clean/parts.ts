import type { ImageSize } from '../image-size.ts'
import { Blocks } from './blocks.ts'

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
