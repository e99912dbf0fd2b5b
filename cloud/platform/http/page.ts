import { pagePolicy, type PageAssets } from '../../../protocol/page-assets.ts'
import { ApiError } from '../api-error.ts'
import type { Answer, Call } from './answer.ts'
import type { SiteRoute } from './site-route.ts'

export interface PageOptions {
  /** Content security policy. */
  policy?: string
  /** Whether a path below the place names something that exists. The page is shown in any case, with 404. */
  exists?: (path: string) => Promise<boolean>
  /** The address of a page that has moved; undefined if it has not. */
  movedTo?: (path: string) => Promise<string | undefined>
}

const FILE = /^[\w-]+\.(js|css|svg)$/

/**
 * The routes of a page: its files by name, and its one HTML text at its place and at every other path below it. The page
 * decides what it shows there. Links to its files become absolute, because the paths have several steps.
 *
 * @param place path in the service: `/console`
 * @param root path for browsers, including the path at which a proxy mounts the service
 */
export function pageRoutes(
  place: string,
  root: string,
  assets: PageAssets,
  { policy = pagePolicy, exists, movedTo }: PageOptions = {},
): SiteRoute[] {
  async function answer(call: Call): Promise<Answer<string | Uint8Array<ArrayBuffer>>> {
    const name = call.c.req.path.slice(place.length + 1)
    const accepted = call.header('Accept-Encoding')
    if (FILE.test(name)) {
      const found = assets.file(name, accepted)
      if (found.status !== 200) throw new ApiError('not_found')
      return { ...found, headers: byName(found.headers) }
    }
    const moved = await movedTo?.(name)
    if (moved !== undefined) return { status: 307, headers: { Location: moved }, body: '' }
    const text = assets.text?.('index.html')
    if (text === undefined) {
      const missing = assets.page(accepted)
      return { ...missing, headers: byName(missing.headers) }
    }
    return {
      status: exists === undefined || (await exists(name)) ? 200 : 404,
      headers: {
        'Content-Type': 'text/html; charset=utf-8',
        'Cache-Control': 'no-store',
        'Content-Security-Policy': policy,
      },
      body: text
        .replaceAll('"./', `"${root}/`)
        .replace('<html lang="en"', `<html lang="en" data-languages="${languagesOf(call)}"`),
    }
  }
  const route = { method: 'GET', serve: answer } as const
  return [
    { ...route, path: place },
    { ...route, path: `${place}/:path{.+}` },
  ]
}

/** The languages that the browser prefers, as the text of an attribute. */
const languagesOf = (call: Call): string =>
  (call.header('Accept-Language') ?? '').replaceAll(/;[^,]*|[^\w,-]/g, '').slice(0, 200)

/** Headers as this service spells them: a second spelling would add a second header. */
export const byName = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.replaceAll(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase()),
      value,
    ]),
  )
