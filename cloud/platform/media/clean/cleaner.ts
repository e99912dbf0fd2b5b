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
 * Cleans one file, a block at a time: takes out what its maker's device wrote into it, such as the place and the time at which a
 * picture was taken, comments and previews. Everything behind the file's end is blanked, so that no file is two. The picture, its
 * colours and its orientation stay; nothing is compressed again. A file that does not follow its format is passed on unchanged.
 * The work is linear in the bytes and bounded in the parts. Throws `RefusedFile`.
 */
export class Cleaner {
  readonly #file: Parts
  readonly #run: Generator<void>
  readonly #limits: CleaningLimits
  readonly #now: () => number
  #spentMs = 0

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(extension: string, limits: CleaningLimits, now: () => number = () => performance.now()) {
    this.#file = new Parts(limits)
    this.#limits = limits
    this.#now = now
    this.#run = run(this.#file, extension)
  }

  /** The time that the file has taken so far, in milliseconds. */
  get spentMs(): number {
    return this.#spentMs
  }

  /** Handles the next block, which becomes the cleaner's own, and returns the bytes that are kept so far. */
  push(block: Buffer): Buffer {
    this.#file.add(block)
    return this.#work()
  }

  /** Ends the file, and returns the last bytes that are kept. */
  end(): Buffer {
    this.#file.ended = true
    return this.#work()
  }

  #work(): Buffer {
    const begun = this.#now()
    try {
      this.#run.next()
      return this.#file.take()
    } finally {
      this.#spentMs += this.#now() - begun
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
