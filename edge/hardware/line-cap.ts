import { Transform, type TransformCallback } from 'node:stream'

const LINE_FEED = 0x0a

/**
 * Cuts every line off after `maxBytes`, so that what follows never holds more than one line. (`ReadlineParser` has no
 * cap, and copies what it holds with every chunk.)
 */
export class LineCap extends Transform {
  readonly #maxBytes: number
  /** Bytes of the current line that were let through. */
  #length = 0

  constructor(maxBytes: number) {
    super()
    this.#maxBytes = maxBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    for (let start = 0; start < chunk.length;) {
      const feed = chunk.indexOf(LINE_FEED, start)
      const end = feed < 0 ? chunk.length : feed
      const kept = Math.min(end - start, this.#maxBytes - this.#length)
      if (kept > 0) this.push(chunk.subarray(start, start + kept))
      this.#length += kept
      if (feed >= 0) {
        this.push(chunk.subarray(feed, feed + 1))
        this.#length = 0
      }
      start = end + 1
    }
    done()
  }
}
