import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import type { PageAssets } from '../../protocol/page-assets.ts'
import { ApiError } from '../platform/api-error.ts'
import { reply, type Handlers } from '../platform/http/handler.ts'
import { byName } from '../platform/http/page.ts'
import { matchesTag } from '../platform/http/web.ts'
import { DocsPages, type DocsFile } from './docs-pages.ts'
import type { Description } from './description.ts'

/**
 * The page runs its own files only, calls its own service only, and cannot be framed. Styles that
 * the reference makes while it runs carry the answer's nonce (`page/page.ts`).
 */
const policyWith = (nonce: string | undefined): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    nonce === undefined ? "style-src 'self'" : `style-src 'self' 'nonce-${nonce}'`,
    // An attribute styles its element alone; the editor of a call's body measures text by them.
    ...(nonce === undefined ? [] : ["style-src-attr 'unsafe-inline'"]),
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

/** Browsers show a page again without asking for this long, in seconds; after that they ask whether it has changed. */
const FRESH_S = 300

interface Call {
  header(name: string): string | undefined
}

/**
 * Serves the documentation (`docs-pages.ts`) and the files of its pages, which are bundled when the service is built.
 * `describe`: the OpenAPI document of the service.
 */
export function docsHandlers(
  random: Random,
  assets: PageAssets,
  describe: () => Description = () => nothing,
): Handlers<'root.docs' | 'root.docs.file'> {
  const pages = new DocsPages(assets, once(describe))

  function send(file: DocsFile, call: Call) {
    if (file.needsNonce) {
      // Its address stays the same, and its text differs at each answer: it is small.
      const nonce = randomHex(random, 16)
      const text = file.text.replace('<head>', `<head><meta name="style-nonce" nonce="${nonce}" />`)
      return { text, headers: { ...policy(file, nonce), 'Cache-Control': 'no-store' } }
    }
    const etag = `W/"${hash('sha256', file.text, 'base64url').slice(0, 22)}"`
    const headers = {
      ...policy(file, undefined),
      ETag: etag,
      'Cache-Control': `public, max-age=${FRESH_S}, stale-while-revalidate=86400`,
    }
    const known = call.header('If-None-Match')
    return { text: known !== undefined && matchesTag(known, etag) ? undefined : file.text, headers }
  }

  return {
    'root.docs': (input) => {
      const home = pages.find('')
      if (!home) {
        // The build has no page, or a page without places to fill.
        const { status, body } = assets.page(undefined)
        const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
        return Promise.resolve(
          reply(linked(text, input.url), {
            status,
            headers: policy({ type: 'text/html; charset=utf-8' }, undefined),
          }),
        )
      }
      const { text, headers } = send({ ...home, text: linked(home.text, input.url) }, input)
      return Promise.resolve(
        text === undefined ? reply('', { status: 304, headers }) : reply(text, { headers }),
      )
    },
    'root.docs.file': (input) => {
      const made = pages.find(input.params.path)
      if (made) {
        const { text, headers } = send(made, input)
        if (text === undefined) return Promise.resolve(reply(null, { status: 304, headers }))
        const isPacked = /\bgzip\b/.test(input.header('Accept-Encoding') ?? '')
        const body = isPacked ? zipped(text) : text
        return Promise.resolve(
          reply(new Response(body).body, {
            headers: {
              ...headers,
              'Content-Type': made.type,
              Vary: 'Accept-Encoding',
              ...(isPacked && { 'Content-Encoding': 'gzip' }),
            },
          }),
        )
      }
      const { status, headers, body } = assets.file(input.params.path, input.header('Accept-Encoding'))
      if (status !== 200) throw new ApiError('not_found')
      return Promise.resolve(reply(new Response(body).body, { headers: byName(headers) }))
    },
  }
}

const nothing: Description = {
  info: { title: '', version: '', description: '' },
  servers: [],
  tags: [],
  paths: {},
}

function once<T>(make: () => T): () => T {
  let kept: { value: T } | undefined
  return () => (kept ??= { value: make() }).value
}

const policy = ({ type }: Pick<DocsFile, 'type'>, nonce: string | undefined): Record<string, string> =>
  type === 'application/json' ? {} : { 'Content-Security-Policy': policyWith(nonce) }

/** The files of the start page stand below it, however its own address ends. */
function linked(text: string, url: URL): string {
  if (url.pathname.endsWith('/')) return text
  return text.replaceAll('"./', '"./docs/').replaceAll('href="../openapi.json"', 'href="./openapi.json"')
}

/** Pages are compressed once; there are as many as guides and subjects. */
const packed = new Map<string, Uint8Array<ArrayBuffer>>()
const PACKED_MOST = 200
function zipped(text: string): Uint8Array<ArrayBuffer> {
  const key = hash('sha256', text)
  const found = packed.get(key)
  if (found) return found
  const made = new Uint8Array(gzipSync(text))
  if (packed.size < PACKED_MOST) packed.set(key, made)
  return made
}
