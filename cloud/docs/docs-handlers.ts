import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import type { PageAssets } from '../../protocol/page-assets.ts'
import { ApiError } from '../platform/api-error.ts'
import { reply, type Handlers } from '../platform/http/handler.ts'

/**
 * Nothing but the page's own files runs on it, it speaks with its own service only, and stands in nobody's frame. Styles that
 * the reference makes while it runs carry the answer's nonce (`page/own-styles.ts`).
 */
const policyWith = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    // An attribute styles its element alone; the editor of a call's body measures text by them.
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

/** Serves the documentation: one page (`page/`), bundled when the service is built, with all that it is made of. */
export function docsHandlers(random: Random, assets: PageAssets): Handlers<'root.docs' | 'root.docs.file'> {
  return {
    'root.docs': ({ url }) => {
      const { status, body } = assets.page(undefined)
      const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
      // Its files stand below it, however its own address ends.
      const page = url.pathname.endsWith('/') ? text : text.replaceAll('"./', '"./docs/')
      const nonce = randomHex(random, 16)
      return Promise.resolve(
        reply(page.replace('<head>', `<head><meta name="style-nonce" nonce="${nonce}" />`), {
          status,
          headers: { 'Content-Security-Policy': policyWith(nonce), 'Cache-Control': 'no-store' },
        }),
      )
    },
    'root.docs.file': (input) => {
      const { status, headers, body } = assets.file(input.params.path, input.header('Accept-Encoding'))
      if (status !== 200) throw new ApiError('not_found')
      return Promise.resolve(reply(new Response(body).body, { headers: byName(headers) }))
    },
  }
}

/** As this service spells them. */
const byName = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.replaceAll(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase()),
      value,
    ]),
  )
