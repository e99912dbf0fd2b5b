import type { ImageSize } from '../image-size.ts'
import { Blocks } from './blocks.ts'

/** What a file may be made of. Work grows with its structure, so that a limit of bytes is not enough. */
export interface CleaningLimits {
  /** Segments, chunks, blocks, frames or boxes. */
  parts: number
  /** How deep boxes may stand within boxes. */
  depth: number
  /** Width times height of an image. */
  pixels: number
  /** Processor time for one file, in milliseconds. */
  processorMs: number
}

/** Why a file is refused. `structure`: it is not built as its format demands, or of too many parts. */
export type Refusal = { kind: 'structure'; reason: string } | { kind: 'pixels'; size: ImageSize }

export class RefusedFile extends Error {
  override readonly name = 'RefusedFile'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal.kind === 'structure' ? refusal.reason : 'too many pixels')
    this.refusal = refusal
  }
}

/** What a parser reads and reports to. */
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

  /** Checks how deep a part stands within others. */
  enter(depth: number): void {
    if (depth > this.#limits.depth) this.refuse(`its boxes are more than ${this.#limits.depth} deep`)
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
