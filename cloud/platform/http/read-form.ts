import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import type { Context } from 'hono'
import type { ValidationItem } from '../../../protocol/contract/errors.ts'
import {
  FORM_TEXT_BYTES,
  KIB,
  MIB,
  totalBytesOf,
  type FileField,
  type Form,
  type FormFile,
} from '../../../protocol/contract/form.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import { HEAD_BYTES, mediaTypeOf, mediaTypes, type MediaType } from '../media/media-type.ts'
import { cleaned } from '../media/clean/cleaning.ts'
import { RefusedFile, type CleaningLimits, type Refusal } from '../media/clean/parts.ts'
import type { Media } from '../media/media.ts'
import { bodyOf, type Body } from './read-body.ts'
import { LIST_NAME } from './validate.ts'
import { extra, missing, notUtf8, tooMany } from './validation-items.ts'
import type { CloudSettings } from '../settings/limits.ts'

/** A received form: its text, and its files, which are already in the media store. */
export interface ReceivedForm {
  texts: URLSearchParams
  files: FormFile[]
  /** The id of a `numbered` form's object (`Form.numbered`), assigned at the first call. */
  number(): Promise<number>
  /** Problems of its files. */
  items: ValidationItem[]
  /** Equal for forms with the same text and files, whatever their boundaries. */
  fingerprint: string
}

interface FormRequest {
  form: Form
  contentType: string | undefined
  body: Body
}

/** Bytes of part names, headers and boundaries, in addition to the content. */
const FRAME_BYTES = 256 * KIB
const MAX_PARTS = 100
const MAX_NAME_LENGTH = 255

export const formRequestOf = (form: Form, c: Context): FormRequest => ({
  form,
  contentType: c.req.header('Content-Type'),
  body: bodyOf(c),
})

interface FormLimits extends UploadPace {
  clock: Clock
  /** Images with more pixels are also refused, because a viewer needs memory for each pixel. */
  cleaning: CleaningLimits
  /** Called with the processor time of the files, in milliseconds. If it throws, the form is refused. */
  spent: (ms: number) => void
}

/** A form that is being read. */
interface Reading extends FormLimits {
  media: Media
  form: Form
  received: ReceivedForm
  /** Digests of the files as sent, in order. */
  digests: string[]
  /** Number of files so far per field, and their total bytes. */
  fileCounts: Record<string, number>
  fileBytes: number
}

/**
 * Reads a multipart form. Its files are stored as they arrive. If the form is refused or incomplete, none remains.
 * Throws `unsupported_media_type`, `payload_too_large` or `validation_error`.
 */
export async function readForm(
  media: Media,
  limits: FormLimits,
  request: FormRequest,
): Promise<ReceivedForm> {
  const { form, body } = request
  if (body.length > totalBytesOf(form) + FORM_TEXT_BYTES + FRAME_BYTES)
    throw new ApiError('payload_too_large')
  let number: Promise<number> | undefined
  const received: ReceivedForm = {
    texts: new URLSearchParams(),
    files: [],
    number: () => (number ??= media.nextNumber(form.folder)),
    items: [],
    fingerprint: '',
  }
  const reading: Reading = { media, ...limits, form, received, digests: [], fileCounts: {}, fileBytes: 0 }
  try {
    if (body.bytes) await readParts(reading, body.bytes, request.contentType)
  } catch (error) {
    await media.release(received.files.map(({ key }) => key))
    throw error
  }
  for (const [field, { required }] of Object.entries(form.files))
    if (required && !received.files.some(({ fieldname }) => fieldname === field))
      received.items.push({ loc: ['body', field], ...missing })
  received.texts.sort()
  received.fingerprint = JSON.stringify([[...received.texts], reading.digests])
  return received
}

/** Feeds the parser until the body ends or fails, or its sender stops sending. */
async function readParts(reading: Reading, body: Readable, contentType = ''): Promise<void> {
  const parser = openParser(reading.form, contentType)
  const files: BusboyFileStream[] = []
  let stored: Promise<unknown> = Promise.resolve()
  const failure = new Promise<never>((_resolve, reject) => {
    parser.on('error', (error) => reject(malformed(error)))
    parser.on('partsLimit', () => reject(malformed('too many parts')))
    parser.on('field', (name, value, _nameCut, valueCut) => {
      if (valueCut) reject(new ApiError('payload_too_large'))
      // The parser replaces invalid UTF-8 with U+FFFD.
      else if (value.includes('\uFFFD')) reading.received.items.push({ loc: ['body', name], ...notUtf8 })
      else if (Object.hasOwn(reading.form.fields.shape, name)) reading.received.texts.append(name, value)
    })
    parser.on('file', (sentName, content, fileName) => {
      // The reader of the content gets its error. Without a listener it would end the process.
      content.on('error', () => {})
      const name = plainFieldOf(sentName)
      const field = Object.hasOwn(reading.form.files, name) ? reading.form.files[name] : undefined
      if (!field) {
        // A browser sends an unnamed part for an empty file field.
        if (fileName) reading.received.items.push({ loc: ['body', sentName], ...extra })
        return void content.resume()
      }
      files.push(content)
      stored = stored.then(() => storeFile(reading, { name, field, fileName, content }))
      stored.catch(reject)
    })
  })
  // No caller may be waiting for it when it fails.
  failure.catch(() => {})
  const finished = new Promise<void>((resolve) => parser.once('finish', resolve))

  const chunks = body.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>
  let takenBytes = 0
  const timer = new UploadTimer(reading.clock, reading)
  try {
    for (;;) {
      const chunk = await nextFrom(reading.clock, chunks, body, timer)
      if (!chunk) break
      await Promise.race([new Promise((resolve) => parser.write(chunk, resolve)), failure])
      takenBytes += chunk.length
      const inFiles = files.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
      if (takenBytes - inFiles > FORM_TEXT_BYTES + FRAME_BYTES) throw new ApiError('payload_too_large')
    }
    parser.end()
    await Promise.race([finished, failure])
    await stored
  } catch (error) {
    for (const content of files) content.destroy(error instanceof Error ? error : undefined)
    await stored.catch(() => {})
    throw error
  } finally {
    // The rest of the request stays unread. The answer is sent while the connection still accepts one.
    if (!body.destroyed) await chunks.return?.()
  }
}

/** The intended field. Clients send the files of a list as `media[]` or `media[0]`. */
const plainFieldOf = (name: string): string => name.replace(LIST_NAME, '')

function openParser(form: Form, contentType: string) {
  const wrong = () => new ApiError('unsupported_media_type', 'The body must be multipart/form-data.')
  if (!/^multipart\/form-data\s*;/i.test(contentType)) throw wrong()
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      // Only the name decides: generated clients send JSON as a file, and scripts send files without a file name.
      isPartAFile: (name, _type, fileName) =>
        name !== undefined &&
        !Object.hasOwn(form.fields.shape, name) &&
        (Object.hasOwn(form.files, plainFieldOf(name)) || fileName !== undefined),
      limits: { fieldSize: FORM_TEXT_BYTES, parts: MAX_PARTS, headerPairs: 20, headerSize: 8 * KIB },
    })
  } catch {
    // The content type has no boundary.
    throw wrong()
  }
}

/** The next bytes of the body, or undefined at its end. */
async function nextFrom(
  clock: Clock,
  chunks: AsyncIterator<Buffer>,
  body: Readable,
  timer: UploadTimer,
): Promise<Buffer | undefined> {
  const cancel = clock.after(timer.leftMs, () => body.destroy(new ApiError('request_timeout')))
  try {
    return await timer.spend(next(chunks))
  } catch (error) {
    throw malformed(error)
  } finally {
    cancel()
  }
}

interface FilePart {
  name: string
  field: FileField
  fileName: string | undefined
  content: Readable
}

/**
 * Stores a file of a form. Throws `unsupported_media_type` if the field does not accept its content,
 * `payload_too_large`, and `validation_error` for too many files.
 */
async function storeFile(reading: Reading, { name, field, fileName, content }: FilePart): Promise<void> {
  const { form, fileCounts, received } = reading
  const chunks = content[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const head = await readHead(chunks)
  // A browser sends such a part for an empty file field.
  if (head.length === 0 && !fileName) return

  const { maxFiles = 1 } = field
  fileCounts[name] = (fileCounts[name] ?? 0) + 1
  if (fileCounts[name] > maxFiles) throw ApiError.invalid({ loc: ['body', name], ...tooMany(maxFiles) })
  const type = mediaTypeOf(head)
  const limitBytes = type && limitOf(field, type)
  if (!type || limitBytes === undefined) throw unsupported(name, field)

  const sent = createHash('sha256')
  async function* limited(): AsyncGenerator<Uint8Array> {
    let size = 0
    for (let chunk: Buffer | undefined = head; chunk; chunk = await next(chunks)) {
      size += chunk.length
      reading.fileBytes += chunk.length
      if (size > limitBytes! || reading.fileBytes > totalBytesOf(form))
        throw new ApiError('payload_too_large', tooLarge(name, type!, limitBytes!, form))
      sent.update(chunk)
      yield chunk
    }
  }
  const number = form.numbered && (await received.number())
  const { media, cleaning: limits, spent } = reading
  const kept = cleaned(media.cleaning, type.extension, limited(), { limits, spent })
  const stored = await media
    .store({ folder: form.folder, number, type, content: kept })
    .catch((error: unknown) => {
      throw error instanceof RefusedFile ? refusedFile(name, error.refusal, limits) : error
    })
  const { key, size, mimeType } = stored
  const originalName = plainName(fileName) || name
  received.files.push({ fieldname: name, original_name: originalName, mime_type: mimeType, size, key })
  reading.digests.push(sent.digest('hex'))
}

function refusedFile(name: string, refusal: Refusal, { pixels }: CleaningLimits): ApiError {
  if (refusal.kind === 'structure')
    return new ApiError('unsupported_media_type', `${name}: ${refusal.reason}.`)
  const { width, height } = refusal.size
  return new ApiError(
    'payload_too_large',
    `${name}: an image may have ${pixels} pixels, and this one has ${width} × ${height}.`,
  )
}

const limitOf = (field: FileField, { kind }: MediaType): number | undefined =>
  kind === 'image' ? field.imageBytes : field.videoBytes

function unsupported(name: string, field: FileField): ApiError {
  const accepted = mediaTypes.filter((each) => limitOf(field, each) !== undefined)
  return new ApiError(
    'unsupported_media_type',
    `${name} must be one of ${accepted.map(({ extension }) => extension).join(', ')}, judged by its content.`,
    { field: name, accepted: accepted.map(({ mimeType }) => mimeType) },
  )
}

const tooLarge = (name: string, { kind }: MediaType, limitBytes: number, form: Form): string =>
  `${name}: ${kind === 'image' ? 'an image' : 'a video'} may have ${limitBytes / MIB} MiB, all files together ${totalBytesOf(form) / MIB} MiB.`

function malformed(reason: unknown): ApiError {
  if (reason instanceof ApiError) return reason
  const message = reason instanceof Error ? reason.message : String(reason)
  return new ApiError('validation_error', 'The form is malformed, or ended too early.', undefined, [
    { loc: ['body'], msg: `Value error, ${message}`, type: 'value_error' },
  ])
}

async function next(chunks: AsyncIterator<Buffer>): Promise<Buffer | undefined> {
  const { done, value } = await chunks.next()
  return done ? undefined : value
}

/** The first bytes of a file, as many as determine its type. */
async function readHead(chunks: AsyncIterator<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let length = 0; length < HEAD_BYTES;) {
    const chunk = await next(chunks)
    if (!chunk) break
    parts.push(chunk)
    length += chunk.length
  }
  return Buffer.concat(parts)
}

/** A file's name from its sender, without folders and control characters. */
const plainName = (name = ''): string =>
  name
    .replaceAll(/^.*[\\/]/g, '')
    .replaceAll(/\p{C}/gu, '')
    .slice(0, MAX_NAME_LENGTH)

type UploadPace = Pick<CloudSettings, 'uploadPatienceMs' | 'uploadBytesPerSecond'>

/**
 * The time that an upload still waits for its sender. Waiting reduces it, and each received byte increases it, up to
 * `uploadPatienceMs`. The upload ends if its sender is silent for that time, or sends fewer than `uploadBytesPerSecond`
 * for long. Time in which the service itself is busy does not count.
 */
export class UploadTimer {
  readonly #clock: Clock
  readonly #pace: UploadPace
  #leftMs: number

  constructor(clock: Clock, pace: UploadPace) {
    this.#clock = clock
    this.#pace = pace
    this.#leftMs = pace.uploadPatienceMs
  }

  get leftMs(): number {
    return this.#leftMs
  }

  /** Waits for the next bytes. */
  async spend<T extends { length: number } | undefined>(arrival: Promise<T>): Promise<T> {
    const startedAt = this.#clock.monotonic()
    const bytes = await arrival
    const waitedMs = this.#clock.monotonic() - startedAt
    const earnedMs = ((bytes?.length ?? 0) / this.#pace.uploadBytesPerSecond) * 1000
    this.#leftMs = Math.min(this.#pace.uploadPatienceMs, this.#leftMs - waitedMs + earnedMs)
    return bytes
  }
}
