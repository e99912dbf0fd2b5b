import { cleanBoxes } from './boxes.ts'
import { cleanGif } from './gif.ts'
import { cleanJpeg } from './jpeg.ts'
import { Parts, type CleaningLimits } from './parts.ts'
import { cleanPng } from './png.ts'
import { cleanWebp } from './webp.ts'

type Parser = (file: Parts) => Generator<void>

const images: Readonly<Record<string, Parser>> = {
  png: cleanPng,
  jpg: cleanJpeg,
  gif: cleanGif,
  webp: cleanWebp,
}
const films: Readonly<Record<string, Parser>> = { mp4: cleanBoxes, mov: cleanBoxes }

/**
 * Cleans a file, a block at a time. Removes metadata of the recording device: place, time, comments, previews. Replaces
 * everything after the file's end by zeros, so that no file contains a second one. The picture, its colours and its
 * orientation stay, and nothing is compressed again. A malformed file is passed on unchanged. The work is linear in the
 * bytes, and the number of parts is limited. Throws `RefusedFile`.
 */
export class Cleaner {
  readonly #file: Parts
  readonly #run: Generator<void>
  readonly #limits: CleaningLimits
  readonly #now: () => number
  #spentMs = 0

  /** `now`: milliseconds of a monotonic clock. */
  constructor(extension: string, limits: CleaningLimits, now: () => number = () => performance.now()) {
    this.#file = new Parts(limits)
    this.#limits = limits
    this.#now = now
    this.#run = run(this.#file, extension)
  }

  /** Processor time of the file so far, in milliseconds. */
  get spentMs(): number {
    return this.#spentMs
  }

  /**
   * Processes the next block and takes ownership of it, until `leaveBlock`. Returns the bytes kept so far, which can be
   * a part of the block.
   */
  push(block: Buffer): Buffer {
    this.#file.add(block)
    return this.#work()
  }

  /** Gives the memory of the last block back to the caller. */
  leaveBlock(): void {
    this.#file.leaveBlock()
  }

  /** Ends the file. Returns the last kept bytes. */
  end(): Buffer {
    this.#file.ended = true
    return this.#work()
  }

  #work(): Buffer {
    const startedAt = this.#now()
    try {
      this.#run.next()
      return this.#file.take()
    } finally {
      this.#spentMs += this.#now() - startedAt
      if (this.#spentMs > this.#limits.processorMs)
        this.#file.refuse(`it takes more than ${this.#limits.processorMs} ms of processor time`)
    }
  }
}

function* run(file: Parts, extension: string): Generator<void> {
  const parser = images[extension] ?? films[extension]
  yield* parser ? parser(file) : file.pass(Infinity)
  if (images[extension]) file.requireSize()
  yield* file.blank(Infinity)
}
