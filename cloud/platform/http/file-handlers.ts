import type { fileRoutes } from '../../../protocol/contract/root-routes.ts'
import type { CloudContext } from '../context.ts'
import { ApiError } from '../api-error.ts'
import { reply, type Handlers } from './handler.ts'
import { matchesTag } from './web.ts'
import type { Media, StoredFile } from '../media/media.ts'
import type { MediaSigner } from '../media/addresses.ts'
import { isMediaKey, type ByteRange } from '../media/store.ts'

/** Serves files of the media store to any caller with a signed address. */
export function fileHandlers(
  { runtime }: CloudContext,
  media: Media,
  signer: MediaSigner,
): Handlers<keyof typeof fileRoutes> {
  return {
    async 'root.files'(input) {
      const { path: key } = input.params
      const { expires, signature } = input.query
      const until = signer.check(key, { expires, signature })
      if (until === null)
        throw new ApiError('forbidden', 'The address of the file is not signed, or has expired.')
      const file = isMediaKey(key) ? await media.find(key) : null
      if (!file) throw new ApiError('not_found', 'The file is no longer there.')

      const lasts = Math.floor((until - runtime.clock.now()) / 1000)
      return answerFile(input, file, media, {
        'Cache-Control': `private, max-age=${lasts}, immutable`,
        // Browsers must execute nothing in it and must not frame it.
        'Content-Security-Policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
        'Content-Disposition': `inline; filename="${key.slice(key.lastIndexOf('/') + 1)}"`,
        'Cross-Origin-Resource-Policy': 'cross-origin',
      })
    },
  }
}

/** Answers with a file of the media store, or with the part of it that the caller asked for. */
export async function answerFile(
  input: { header(name: string): string | undefined },
  { key, size, sha256, mimeType }: StoredFile,
  media: Pick<Media, 'read'>,
  headers: Record<string, string>,
) {
  const etag = `"${sha256}"`
  const common = { ETag: etag, 'Accept-Ranges': 'bytes', ...headers }
  const selection = selectBytes(
    {
      range: input.header('Range'),
      ifRange: input.header('If-Range'),
      ifNoneMatch: input.header('If-None-Match'),
    },
    { size, etag },
  )
  if (selection.kind === 'not-modified') return reply(null, { status: 304, headers: common })
  if (selection.kind === 'unsatisfiable') throw new ApiError('range_not_satisfiable', undefined, { size })
  const range = selection.kind === 'part' ? selection.range : undefined
  const bytes = await media.read(key, range)
  if (!bytes) throw new Error(`the store has lost ${key}`)
  return reply(bytes, {
    status: range ? 206 : 200,
    headers: {
      ...common,
      'Content-Type': mimeType,
      'Content-Length': String(range ? range.last - range.first + 1 : size),
      ...(range && { 'Content-Range': `bytes ${range.first}-${range.last}/${size}` }),
    },
  })
}

/** The request headers that name the caller's copy and the wanted part. */
export interface Conditions {
  range: string | undefined
  ifRange: string | undefined
  ifNoneMatch: string | undefined
}

type Selection =
  | { kind: 'whole' }
  | { kind: 'part'; range: ByteRange }
  | { kind: 'not-modified' }
  | { kind: 'unsatisfiable' }

/**
 * The part of a file of `size` bytes for a request (RFC 9110 §13, §14). A request for several ranges, or with an
 * invalid range, gets the whole file.
 */
export function selectBytes(
  { range, ifRange, ifNoneMatch }: Conditions,
  { size, etag }: { size: number; etag: string },
): Selection {
  if (ifNoneMatch !== undefined && matchesTag(ifNoneMatch, etag)) return { kind: 'not-modified' }
  if (range === undefined || (ifRange !== undefined && ifRange !== etag)) return { kind: 'whole' }
  const parts = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.trim())
  if (!parts) return { kind: 'whole' }
  const [, from = '', to = ''] = parts
  if (from === '' && to === '') return { kind: 'whole' }
  if (from === '') return last(Number(to))
  const first = Number(from)
  const end = to === '' ? size - 1 : Number(to)
  if (end < first && to !== '') return { kind: 'whole' }
  if (first >= size) return { kind: 'unsatisfiable' }
  return { kind: 'part', range: { first, last: Math.min(end, size - 1) } }

  function last(count: number): Selection {
    if (count === 0 || size === 0) return { kind: 'unsatisfiable' }
    return { kind: 'part', range: { first: Math.max(0, size - count), last: size - 1 } }
  }
}
