import { S3mini } from 's3mini'
import { z } from 'zod'
import { isMediaKey, type MediaStore } from './store.ts'

export interface S3Options {
  /** The bucket's address, as a path: `https://s3.example.org/bucket`. */
  endpoint: string
  region: string
  /** Prefix of each key, without slashes at its ends; may be empty. */
  prefix: string
  accessKeyId: string
  secretAccessKey: string
}

/** Bytes of an upload held in memory: S3's minimum for every part except the last. Some servers require equal parts. */
export const PART_BYTES = 5 * 1024 * 1024
const TIMEOUT_MS = 60_000

/** The names of the objects directly below the prefix. */
export async function listS3({ prefix, ...options }: S3Options): Promise<string[]> {
  const below = prefix === '' ? '' : `${prefix}/`
  const found = await new S3mini({ ...options, fetch: timedFetch }).listObjects('/', below)
  return (found ?? []).map(({ Key }) => Key.slice(below.length)).filter((name) => !name.includes('/'))
}

/**
 * A bucket of any S3-compatible store. A file larger than one part is a multipart upload. `isKey` accepts the names of
 * objects.
 */
export function s3Store({ prefix, ...options }: S3Options, isKey = isMediaKey): MediaStore {
  const s3 = new S3mini({ ...options, fetch: timedFetch })

  function placeOf(key: string): string {
    if (!isKey(key)) throw new Error(`not a key of the media store: ${key}`)
    return prefix === '' ? key : `${prefix}/${key}`
  }

  async function complete(place: string, upload: string, parts: Part[]): Promise<void> {
    // S3 sends the status before it knows the outcome. Only an ETag proves success.
    const { etag } = await s3.completeMultipartUpload(place, upload, parts)
    if (!etag) throw new Error(`the store did not put ${place} together`)
  }

  return {
    async write(key, mimeType, content) {
      const place = placeOf(key)
      let upload: string | undefined
      const sent: Part[] = []
      try {
        for await (const part of partsOf(content)) {
          if (sent.length === 0 && part.length < PART_BYTES) {
            await s3.putObject(place, part, mimeType)
            return
          }
          upload ??= await s3.getMultipartUploadId(place, mimeType)
          sent.push(await s3.uploadPart(place, upload, part, sent.length + 1))
        }
        if (upload === undefined) await s3.putObject(place, '', mimeType)
        else await complete(place, upload, sent)
      } catch (error) {
        // If this fails too, the caller's `remove` does it.
        if (upload !== undefined) await s3.abortMultipartUpload(place, upload).catch(() => {})
        throw error
      }
    },

    async read(key, range) {
      const answer = await s3
        .getObjectRaw(placeOf(key), !range, range?.first, range && range.last + 1)
        .catch(nullWhereAbsent)
      return answer && (answer.body as ReadableStream<Uint8Array>)
    },

    async remove(key) {
      const place = placeOf(key)
      const list = UploadList.parse(await s3.listMultipartUploads('/', '', 'GET', { prefix: place }))
      for (const { Key, UploadId } of list.ListMultipartUploadsResult.Upload)
        if (Key === place) await s3.abortMultipartUpload(place, UploadId).catch(nullWhereAbsent)
      await s3.deleteObject(place).catch(nullWhereAbsent)
    },
  }
}

interface Part {
  partNumber: number
  etag: string
}

/** Every request has a time limit except downloads, which last as long as their receiver reads. */
const timedFetch: typeof fetch = (input, init) =>
  fetch(input, init?.method === 'GET' ? init : { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })

function nullWhereAbsent(error: unknown): null {
  if (error instanceof Error && 'status' in error && error.status === 404) return null
  throw error
}

/** Splits a stream into parts of `PART_BYTES`; the last one is smaller. All parts share one memory. */
async function* partsOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const part = Buffer.allocUnsafeSlow(PART_BYTES)
  let length = 0
  for await (const chunk of content)
    for (let at = 0; at < chunk.length;) {
      const taken = Math.min(PART_BYTES - length, chunk.length - at)
      part.set(chunk.subarray(at, at + taken), length)
      at += taken
      length += taken
      if (length < PART_BYTES) continue
      yield part
      length = 0
    }
  if (length > 0) yield part.subarray(0, length)
}

const Upload = z.object({ Key: z.string(), UploadId: z.string() })

/** S3's XML as the client parses it: a single element is no list, and an element without content is text. */
const UploadList = z.object({
  ListMultipartUploadsResult: z.preprocess(
    (value) => (typeof value === 'string' ? {} : value),
    z.object({ Upload: z.union([z.array(Upload), Upload.transform((one) => [one])]).default([]) }),
  ),
})
