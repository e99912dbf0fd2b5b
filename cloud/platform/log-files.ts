import * as files from 'node:fs'
import { multistream, pino, type Logger } from 'pino'
import { createStream } from 'rotating-file-stream'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import { logOutput } from '../../protocol/model/log-output.ts'

interface LogFileOptions {
  part: string
  /** The file's name without its extension. Each process has its own name. */
  file: string
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  folder: string
}

/** Secret and personal fields, which the log redacts at any depth. */
const secretFields = [
  'authorization',
  'password',
  'secret',
  'token',
  'access_token',
  'push_token',
  'client_secret',
  'wallet_token',
  'identity_token',
  'anonymous_token',
  'apiKey',
  'key',
]

/** Milliseconds until a failed log file is opened again. */
const RETRY_MS = 60_000

/**
 * Writes structured lines to the standard output and to files of a folder. A new file starts each day or at 10 MB; the
 * last twenty files are kept.
 */
export function openLog({ part, file: name, level, folder }: LogFileOptions): Logger {
  makeFolder(files, folder)
  const file = new LogFile(
    () => createStream(`${name}.log`, { path: folder, size: '10M', interval: '1d', maxFiles: 20 }),
    (text) => process.stderr.write(`larder ${part}: ${text}\n`),
  )
  return pino(
    {
      level,
      base: { part },
      redact: { paths: secretFields.flatMap((name) => [name, `*.${name}`]), remove: true },
    },
    multistream([
      {
        level: 'debug',
        stream: logOutput((bytes) => files.writeSync(1, bytes)),
      },
      { level: 'debug', stream: file },
    ]),
  )
}

interface FileStream {
  write(line: string): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** A full disk stops the log file, not the service. The file is opened again when there may be room. */
export class LogFile {
  readonly #open: () => FileStream
  readonly #say: (text: string) => void
  readonly #now: () => number
  #stream: FileStream | undefined
  #failedAt = -Infinity
  #lost = 0

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(
    open: () => FileStream,
    say: (text: string) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#open = open
    this.#say = say
    this.#now = now
    this.#start()
  }

  write(line: string): void {
    if (!this.#stream && this.#now() - this.#failedAt >= RETRY_MS) this.#start()
    if (this.#stream) this.#stream.write(line)
    else this.#lost += 1
  }

  #start(): void {
    if (this.#lost > 0) this.#say(`the log file (LOG_DIR) is opened again; it lacks ${this.#lost} lines`)
    this.#lost = 0
    const stream = this.#open()
    stream.on('error', (error) => {
      // A failed stream also emits an error for each later line.
      if (stream !== this.#stream) return
      this.#stream = undefined
      this.#failedAt = this.#now()
      this.#say(`the log file (LOG_DIR) cannot be written: ${error.message}`)
    })
    this.#stream = stream
  }
}
