import { mkdirSync } from 'node:fs'
import { multistream, pino, type Logger } from 'pino'
import { createStream } from 'rotating-file-stream'

export interface LogFileOptions {
  part: string
  /** Of the file, without its ending; a process of its own for each name. */
  file: string
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  folder: string
}

/** Fields that are nobody's business, wherever one of them should turn up. */
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

/**
 * Structured lines on the standard output, and the same in files of a folder: a new one each day or at 10 MB, of which the
 * last twenty are kept.
 */
export function openLog({ part, file: name, level, folder }: LogFileOptions): Logger {
  mkdirSync(folder, { recursive: true })
  const file = createStream(`${name}.log`, { path: folder, size: '10M', interval: '1d', maxFiles: 20 })
  const log = pino(
    {
      level,
      base: { part },
      redact: { paths: secretFields.flatMap((name) => [name, `*.${name}`]), remove: true },
    },
    multistream([
      { level: 'debug', stream: process.stdout },
      { level: 'debug', stream: file },
    ]),
  )
  // A full disk silences the file, not the service.
  file.on('error', (error) => process.stderr.write(`larder ${part}: log file: ${error.message}\n`))
  return log
}
