import type { Readable } from 'node:stream'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import type { ValidationItem } from '../../../protocol/contract/errors.ts'
import {
  FORM_TEXT_BYTES,
  KIB,
  totalBytesOf,
  type Form,
  type FormFile,
} from '../../../protocol/contract/form.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import type { Media } from '../media/media.ts'
import { ApiError } from '../api-error.ts'
import { receiveFile, type FileCount } from './receive-file.ts'
import { missing } from './validation-items.ts'

/** A form as it came: its text, and its files, which are in the media store by now. */
export interface ReceivedForm {
  texts: URLSearchParams
  files: FormFile[]
  /** See `Form.numbered`; taken when it is first asked for. */
  number(): Promise<number>
  /** What is wrong with its files. */
  items: ValidationItem[]
  /** The same for forms with the same text and files, whatever stands between their parts. */
  fingerprint: string
}

export interface FormRequest {
  form: Form
  contentType: string | undefined
  contentLength: number
  /** Null where the request has none. */
  body: Readable | null
}

/** Names, headers and boundaries of the parts, beside their content. */
const FRAME_BYTES = 256 * KIB
const MAX_PARTS = 100
/** A sender of whom nothing is heard for so long is gone. */
const IDLE_MS = 60_000

/**
 * Reads a multipart form. Its files go to the media store as they come; of a form that is refused, or never ends, none
 * stays there. Throws `unsupported_media_type`, `payload_too_large` or `validation_error`.
 */
export async function readForm(media: Media, clock: Clock, request: FormRequest): Promise<ReceivedForm> {
  const { form, body } = request
  const limitBytes = totalBytesOf(form) + FORM_TEXT_BYTES + FRAME_BYTES
  if (request.contentLength > limitBytes) throw new ApiError('payload_too_large')
  let taken: Promise<number> | undefined
  const number = () => (taken ??= media.nextNumber(form.folder))
  const received: ReceivedForm = {
    texts: new URLSearchParams(),
    files: [],
    number,
    items: [],
    fingerprint: '',
  }
  const digests: string[] = []
  if (body)
    try {
      await receive(body, request.contentType)
    } catch (error) {
      await media.release(received.files.map(({ key }) => key))
      throw error
    }
  for (const [field, { required }] of Object.entries(form.files))
    if (required && !received.files.some(({ fieldname }) => fieldname === field))
      received.items.push({ loc: ['body', field], ...missing })
  received.texts.sort()
  received.fingerprint = JSON.stringify([[...received.texts], digests])
  return received

  async function receive(stream: Readable, contentType = ''): Promise<void> {
    const parser = openParser(form, contentType)
    const counts: FileCount = { files: {}, bytes: 0 }
    let filesDone: Promise<unknown> = Promise.resolve()
    let takenBytes = 0
    const streams: BusboyFileStream[] = []
    const failure = new Promise<never>((_resolve, reject) => {
      parser.on('error', (error) => reject(malformed(error)))
      parser.on('partsLimit', () => reject(malformed('too many parts')))
      parser.on('field', (name, value, _nameCut, valueCut) => {
        if (valueCut) reject(new ApiError('payload_too_large'))
        else if (Object.hasOwn(form.fields.shape, name)) received.texts.append(name, value)
      })
      parser.on('file', (name, content, fileName) => {
        // Heard by whoever reads it; without a listener it would end the process.
        content.on('error', () => {})
        const field = Object.hasOwn(form.files, name) ? form.files[name] : undefined
        if (!field) return void content.resume()
        streams.push(content)
        const source = { form, name, field, fileName, content, number, counts }
        filesDone = filesDone
          .then(() => receiveFile(media, source))
          .then((stored) => {
            if (!stored) return
            received.files.push(stored.file)
            digests.push(stored.sha256)
          })
        filesDone.catch(reject)
      })
    })
    // It is waited for below, unless the form is read to its end first.
    failure.catch(() => {})
    const finished = new Promise<void>((resolve) => parser.once('finish', resolve))

    const chunks = stream.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>
    try {
      for (;;) {
        const chunk = await nextChunk(chunks, stream)
        if (!chunk) break
        await Promise.race([new Promise((resolve) => parser.write(chunk, resolve)), failure])
        takenBytes += chunk.length
        const fileBytes = streams.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
        if (takenBytes - fileBytes > FORM_TEXT_BYTES + FRAME_BYTES) throw new ApiError('payload_too_large')
      }
      parser.end()
      await Promise.race([finished, failure])
      await filesDone
    } catch (error) {
      for (const content of streams) content.destroy(error instanceof Error ? error : undefined)
      await filesDone.catch(() => {})
      throw error
    } finally {
      // What is left of the request is not ours to read; its answer comes while it may still be sent.
      if (!stream.destroyed) await chunks.return?.()
    }
  }

  /** The next bytes, or undefined at the end. */
  async function nextChunk(chunks: AsyncIterator<Buffer>, stream: Readable): Promise<Buffer | undefined> {
    const cancel = clock.after(IDLE_MS, () => stream.destroy(new Error('nothing more came')))
    try {
      const { done, value } = await chunks.next()
      return done ? undefined : value
    } catch (error) {
      throw malformed(error)
    } finally {
      cancel()
    }
  }
}

function openParser(form: Form, contentType: string) {
  const wrong = () => new ApiError('unsupported_media_type', 'The body must be multipart/form-data.')
  if (!/^multipart\/form-data\s*;/i.test(contentType)) throw wrong()
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      // By its name alone: generated clients send JSON as a file, and scripts send files without a name.
      isPartAFile: (name, _type, fileName) =>
        name !== undefined &&
        !Object.hasOwn(form.fields.shape, name) &&
        (Object.hasOwn(form.files, name) || fileName !== undefined),
      limits: { fieldSize: FORM_TEXT_BYTES, parts: MAX_PARTS, headerPairs: 20, headerSize: 8 * KIB },
    })
  } catch {
    // It has no boundary.
    throw wrong()
  }
}

function malformed(reason: unknown): ApiError {
  if (reason instanceof ApiError) return reason
  const message = reason instanceof Error ? reason.message : String(reason)
  return new ApiError('validation_error', 'The form is malformed, or ended too early.', undefined, [
    { loc: ['body'], msg: `Value error, ${message}`, type: 'value_error' },
  ])
}
