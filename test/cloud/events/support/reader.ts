/** A message of a stream of server-sent events. */
export interface Message {
  id: string | undefined
  data: { id: string; data: unknown }
}

/** Reads the messages and comments of a stream of server-sent events. */
export class StreamReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  readonly comments: string[] = []
  readonly messages: Message[] = []
  #rest = ''
  hasEnded = false

  constructor(answer: Response) {
    this.#reader = answer.body!.getReader()
  }

  /** Reads until `count` messages have come, or the stream ends. */
  async take(count: number): Promise<Message[]> {
    while (this.messages.length < count && !this.hasEnded) await this.read()
    return this.messages.splice(0, count)
  }

  /** Reads the next chunk. */
  async read(): Promise<void> {
    const { done, value } = await this.#reader.read()
    this.hasEnded = done
    if (value === undefined) return
    const blocks = (this.#rest + this.#decoder.decode(value, { stream: true })).split('\n\n')
    this.#rest = blocks.pop()!
    for (const block of blocks) {
      if (block.startsWith(':')) {
        this.comments.push(block.slice(2))
        continue
      }
      const fields = new Map(block.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]))
      this.messages.push({ id: fields.get('id'), data: JSON.parse(fields.get('data')!) as Message['data'] })
    }
  }

  close(): Promise<void> {
    return this.#reader.cancel()
  }
}
