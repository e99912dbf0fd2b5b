import { Transform, type TransformCallback } from 'node:stream'
import { ReadlineParser } from '@serialport/parser-readline'
import { SerialPort } from 'serialport'
import { MAX_LINE_BYTES } from '../../protocol/serial/frames.ts'
import type { LinePort, LinePortHandlers, OpenLinePort } from '../../protocol/serial/line-port.ts'
import { readSync, writeSync } from 'node:fs'

/** Longer than the longest line with its carriage return, so that the codec detects a cut line and refuses it. */
const CAP_BYTES = MAX_LINE_BYTES + 2
/**
 * Size of one read, and of each port's buffer: about a dozen lines. The library's default of 64 KiB is meant
 * for files.
 */
const READ_BYTES = 4096

/** A real serial line: `serialport` on a device or a pseudo-terminal. */
export const openSerialPort: OpenLinePort = ({ path, baudRate }, handlers) =>
  new SerialPortLine(path, baudRate, handlers)

class SerialPortLine implements LinePort {
  readonly #port: SerialPort
  readonly #handlers: LinePortHandlers
  #ended = false

  constructor(path: string, baudRate: number, handlers: LinePortHandlers) {
    this.#handlers = handlers
    const binding = promptBinding
    // `hupcl: false`: many boards reset when DTR falls, and a restart of the hub's service must not restart
    // them.
    const settings = {
      path,
      baudRate,
      hupcl: false,
      lock: true,
      autoOpen: false,
      highWaterMark: READ_BYTES,
      binding,
    }
    this.#port = new SerialPort(settings)
    this.#port.on('error', (error) => this.#end(portProblem(path, error.message)))
    this.#port.on('close', (error: Error | null) =>
      this.#end(error ? portProblem(path, error.message) : 'the port closed'),
    )
    // A hang-up may also read as the end of a file.
    this.#port.on('end', () => this.#end('the port hung up'))
    // Always reads: a port without a reader does not detect its removal until a write fails.
    this.#port
      .pipe(new LineCap(CAP_BYTES))
      .pipe(new ReadlineParser({ encoding: 'latin1' }))
      .on('data', (line: string) => {
        if (!this.#ended) this.#handlers.onLine(line)
      })
    this.#port.open((error) => {
      if (error) return this.#end(portProblem(path, error.message))
      if (this.#ended) return this.#release()
      this.#handlers.onOpen()
    })
  }

  write(line: string): boolean {
    // On a closed port `serialport` would queue the line.
    if (this.#ended || !this.#port.isOpen) return false
    this.#port.write(`${line}\n`, 'latin1')
    return true
  }

  close(): void {
    this.#ended = true
    this.#release()
  }

  #end(reason: string): void {
    if (this.#ended) return
    this.#ended = true
    this.#release()
    this.#handlers.onClose(reason)
  }

  #release(): void {
    // While the port opens there is nothing to close yet. The callback of `open` calls this function again.
    if (this.#port.isOpen) this.#port.close()
  }
}

const problems: readonly (readonly [RegExp, string])[] = [
  [/no such file|no such device/i, 'there is no such port'],
  [/permission denied|not permitted/i, 'the service has no permission to open it'],
  [/cannot lock port|resource temporarily unavailable|busy/i, 'another process uses the port'],
  [/inappropriate ioctl|is a directory|invalid argument/i, 'it is not a serial port'],
]

/** The reason of a port's failure, for people: the system's message and its meaning. */
export function portProblem(path: string, message: string): string {
  const [, meaning] = problems.find(([pattern]) => pattern.test(message)) ?? []
  const system = message.replace(/^Error:? /, '')
  return meaning === undefined ? system : `${path}: ${meaning} (${system})`
}

const LINE_FEED = 0x0a

/**
 * Cuts every line off after `maxBytes`, so that the next stage never buffers more than one line.
 * (`ReadlineParser` has no limit, and copies its buffer with every chunk.)
 */
class LineCap extends Transform {
  readonly #maxBytes: number
  /** Bytes of the current line that were passed on. */
  #length = 0

  constructor(maxBytes: number) {
    super()
    this.#maxBytes = maxBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (this.#length + chunk.length <= this.#maxBytes) {
      // No line in the chunk can be too long.
      const feed = chunk.lastIndexOf(LINE_FEED)
      this.#length = feed < 0 ? this.#length + chunk.length : chunk.length - feed - 1
      return done(null, chunk)
    }
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

/** Members of `serialport`'s ports on Unix, in addition to the common interface. */
interface PolledPort {
  readonly fd: number | null
  readonly poller: {
    once(event: 'readable' | 'writable', done: (error: Error | null) => void): unknown
    poll(events: number): void
  }
  read(buffer: Buffer, offset: number, length: number): Promise<{ buffer: Buffer; bytesRead: number }>
  write(buffer: Buffer): Promise<void>
}

/** Flags of libuv's `uv_poll_t`. */
const READABLE_AND_WRITABLE = 1 | 2

/**
 * `serialport`'s own binding, but its ports read and write in the calling thread, for two reasons:
 *
 * - In Node's thread pool a write may begin after the port closed. Its descriptor may then belong to another
 *   file.
 * - The library uses two thread switches for a line of a few bytes, and two more to learn that no data is left.
 *   These switches cost more than all of the hub's work for the line.
 *
 * They also go on in a callback of Node's own. Since Node 26.4 no promise continues after a callback of the library's
 * native part: a received line would wait for the next timer.
 */
const promptBinding = {
  list: () => SerialPort.binding.list(),
  async open(options: { path: string; baudRate: number }) {
    const port = await SerialPort.binding.open(options)
    return 'poller' in port ? Object.assign(port, promptly(port)) : port
  },
}

function promptly(port: PolledPort): Pick<PolledPort, 'read' | 'write'> {
  /** The descriptor, for immediate use: after a pause it may belong to another file. */
  const descriptor = (): number => {
    if (port.fd === null) throw canceled()
    return port.fd
  }
  let isBlocked = false
  const until = (event: 'readable' | 'writable'): Promise<void> =>
    new Promise((resolve, reject) => {
      descriptor()
      port.poller.once(event, (error) => setImmediate(() => (error ? reject(error) : resolve())))
      // `once` polls for its own event only, and so ends the wait for the other one.
      if (isBlocked) port.poller.poll(READABLE_AND_WRITABLE)
    })
  return {
    async read(buffer, offset, length) {
      for (;;) {
        await until('readable')
        const bytesRead = unlessBusy(() => readSync(descriptor(), buffer, offset, length, null))
        // Zero bytes: the line hung up.
        if (bytesRead !== undefined) return { buffer, bytesRead }
      }
    },
    async write(buffer) {
      for (let rest = buffer; ;) {
        rest = rest.subarray(unlessBusy(() => writeSync(descriptor(), rest)) ?? 0)
        if (rest.length === 0) return
        isBlocked = true
        try {
          await until('writable')
        } finally {
          isBlocked = false
        }
      }
    },
  }
}

/** The error that `serialport` uses when the port was closed. */
const canceled = (): Error => Object.assign(new Error('Port is not open'), { canceled: true })

/** Undefined if the system would block. */
function unlessBusy(call: () => number): number | undefined {
  try {
    return call()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EAGAIN' || code === 'EWOULDBLOCK' || code === 'EINTR') return undefined
    throw error
  }
}
