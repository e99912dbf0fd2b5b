import type { Readable } from 'node:stream'
import {
  MIB,
  totalBytesOf,
  type FileField,
  type Form,
  type FormFile,
} from '../../../protocol/contract/form.ts'
import { HEAD_BYTES, mediaTypeOf, mediaTypes, type MediaType } from '../media/media-type.ts'
import type { Media } from '../media/media.ts'
import { ApiError } from '../api-error.ts'

/** What has come of a form's files so far. */
export interface FileCount {
  files: Record<string, number>
  bytes: number
}

export interface FileSource {
  form: Form
  name: string
  field: FileField
  fileName: string | undefined
  content: Readable
  number: () => Promise<number>
  counts: FileCount
}

const MAX_NAME_LENGTH = 255

/**
 * Stores one file of a form. Null for the part that a browser sends for a field in which nothing was chosen. Throws
 * `unsupported_media_type` for content that the field does not take, `payload_too_large`, and `validation_error` for a file
 * too many.
 */
export async function receiveFile(
  media: Media,
  source: FileSource,
): Promise<{ file: FormFile; sha256: string } | null> {
  const { form, name, field, fileName, counts } = source
  const chunks = source.content[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const head = await readHead(chunks)
  if (head.length === 0 && !fileName) return null

  const { maxFiles = 1 } = field
  counts.files[name] = (counts.files[name] ?? 0) + 1
  if (counts.files[name] > maxFiles)
    throw new ApiError('validation_error', undefined, undefined, [
      {
        loc: ['body', name],
        msg: `List should have at most ${maxFiles} item${maxFiles === 1 ? '' : 's'} after validation`,
        type: 'too_long',
        ctx: { max_length: maxFiles },
      },
    ])
  const type = mediaTypeOf(head)
  const limitBytes = type && limitOf(field, type)
  if (limitBytes === undefined) {
    const accepted = mediaTypes.filter((each) => limitOf(field, each) !== undefined)
    throw new ApiError(
      'unsupported_media_type',
      `${name} must be one of ${accepted.map(({ extension }) => extension).join(', ')}, judged by its content.`,
      { field: name, accepted: accepted.map(({ mimeType }) => mimeType) },
    )
  }

  async function* content(): AsyncGenerator<Uint8Array> {
    let size = 0
    for (let chunk: Buffer | undefined = head; chunk; chunk = await next(chunks)) {
      size += chunk.length
      counts.bytes += chunk.length
      if (size > limitBytes! || counts.bytes > totalBytesOf(form))
        throw new ApiError('payload_too_large', tooLarge(name, type!, limitBytes!, form))
      yield chunk
    }
  }
  const { folder } = form
  const number = form.numbered && (await source.number())
  const stored = await media.store({ folder, number, type: type!, content: content() })
  return {
    file: {
      fieldname: name,
      original_name: plainName(fileName) || name,
      mime_type: stored.mimeType,
      size: stored.size,
      key: stored.key,
    },
    sha256: stored.sha256,
  }
}

const limitOf = (field: FileField, { kind }: MediaType): number | undefined =>
  kind === 'image' ? field.imageBytes : field.videoBytes

const tooLarge = (name: string, { kind }: MediaType, limitBytes: number, form: Form): string =>
  `${name}: ${kind === 'image' ? 'an image' : 'a video'} may have ${limitBytes / MIB} MiB, all files together ${totalBytesOf(form) / MIB} MiB.`

async function next(chunks: AsyncIterator<Buffer>): Promise<Buffer | undefined> {
  const { done, value } = await chunks.next()
  return done ? undefined : value
}

/** As much of the beginning as is needed to judge it. */
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

/** A file's name as its sender gave it, without folders and without what is not text. */
const plainName = (name = ''): string =>
  name
    .replaceAll(/^.*[\\/]/g, '')
    .replaceAll(/\p{C}/gu, '')
    .slice(0, MAX_NAME_LENGTH)
