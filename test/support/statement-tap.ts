import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A statement that a client sent to PostgreSQL. */
export interface TappedStatement {
  text: string
  /** The connection, in the order of their beginnings. */
  connection: number
  /** Whether the client had all earlier answers of the connection: the statement begins a round trip. */
  begins: boolean
}

export interface StatementTap {
  /** The address of the database through the tap. */
  url: string
  /** The statements since the last `take`, in the order of their arrival. */
  take(): TappedStatement[]
  close(): Promise<void>
}

/** Forwards connections to a PostgreSQL server and records the statements. The address must be without TLS. */
export async function statementTap(databaseUrl: string): Promise<StatementTap> {
  const url = new URL(databaseUrl)
  const target = { port: Number(url.port || 5432), host: url.hostname }
  let statements: TappedStatement[] = []
  let connections = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const connection = (connections += 1)
    const peer = connect({ ...target, noDelay: true })
    client.setNoDelay(true)
    const line = new Line((text, begins) => statements.push({ text, connection, begins }))
    client.on('data', (chunk) => {
      line.sent(chunk)
      peer.write(chunk)
    })
    peer.on('data', (chunk) => {
      line.received(chunk)
      client.write(chunk)
    })
    for (const [one, other] of [
      [client, peer],
      [peer, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  url.searchParams.set('sslmode', 'disable')
  return {
    url: url.href,
    take() {
      const taken = statements
      statements = []
      return taken
    },
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** Length of the first message, which has no type. */
const UNTYPED = 4
const TYPED = 5

/** Follows the protocol of one connection (PostgreSQL manual, Frontend/Backend Protocol). */
class Line {
  readonly #onStatement: (text: string, begins: boolean) => void
  readonly #sent = new Messages(true)
  readonly #received = new Messages(false)
  /** Texts of prepared statements by name. */
  readonly #texts = new Map<string, string>()
  #bound = ''
  /** Requests whose answer has not ended. */
  #open = 0
  /** Statements of the request that is being sent. */
  #unsynced = 0

  constructor(onStatement: (text: string, begins: boolean) => void) {
    this.#onStatement = onStatement
  }

  sent(chunk: Buffer): void {
    for (const { type, body } of this.#sent.read(chunk))
      switch (type) {
        case 'P': {
          const [name = '', text = ''] = textsOf(body)
          this.#texts.set(name, text)
          break
        }
        case 'B':
          this.#bound = textsOf(body)[1] ?? ''
          break
        case 'E':
          this.#note(this.#texts.get(this.#bound) ?? '?')
          this.#unsynced += 1
          break
        case 'S':
          this.#open += 1
          this.#unsynced = 0
          break
        case 'Q':
          this.#note(textsOf(body)[0] ?? '')
          this.#open += 1
          break
      }
  }

  received(chunk: Buffer): void {
    for (const { type } of this.#received.read(chunk)) if (type === 'Z' && this.#open > 0) this.#open -= 1
  }

  #note(text: string): void {
    this.#onStatement(text.replace(/\s+/g, ' ').trim(), this.#open === 0 && this.#unsynced === 0)
  }
}

const textsOf = (body: Buffer): string[] => body.toString('latin1').split('\0', 2)

/** Splits bytes into messages. */
class Messages {
  #rest = Buffer.alloc(0)
  #isUntyped: boolean

  constructor(beginsUntyped: boolean) {
    this.#isUntyped = beginsUntyped
  }

  *read(chunk: Buffer): Generator<{ type: string; body: Buffer }> {
    this.#rest = Buffer.concat([this.#rest, chunk])
    for (;;) {
      const head = this.#isUntyped ? UNTYPED : TYPED
      if (this.#rest.length < head) return
      const end = head - UNTYPED + this.#rest.readUInt32BE(head - UNTYPED)
      if (this.#rest.length < end) return
      const type = this.#isUntyped ? '' : String.fromCharCode(this.#rest[0]!)
      const body = this.#rest.subarray(head, end)
      this.#rest = this.#rest.subarray(end)
      this.#isUntyped = false
      yield { type, body }
    }
  }
}
