/** The bytes of a file as they come, taken in pieces as long as a format wants them. */
export class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>
  #ahead: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The next `length` bytes, which stay to be taken; fewer at the end. */
  async peek(length: number): Promise<Buffer> {
    while (this.#ahead.length < length && (await this.#fetch()));
    return this.#ahead.subarray(0, length)
  }

  /** The next `length` bytes; fewer at the end. For as many only as memory may hold. */
  async take(length: number): Promise<Buffer> {
    const taken = await this.peek(length)
    this.#ahead = this.#ahead.subarray(taken.length)
    return taken
  }

  /** The next `length` bytes in pieces. */
  async *pass(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0;) {
      if (this.#ahead.length === 0 && !(await this.#fetch())) return
      const piece = await this.take(Math.min(left, this.#ahead.length))
      left -= piece.length
      yield piece
    }
  }

  async skip(length: number): Promise<void> {
    for await (const _ of this.pass(length));
  }

  async #fetch(): Promise<boolean> {
    const { done, value } = await this.#chunks.next()
    if (done) return false
    const chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    this.#ahead = this.#ahead.length === 0 ? chunk : Buffer.concat([this.#ahead, chunk])
    return true
  }
}
