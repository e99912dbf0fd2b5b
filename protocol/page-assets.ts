/**
 * The files of a page from `npm run build`: `index.html`, and scripts and styles with a hash of their content in their
 * names. Each also has compressed forms (`.br`, `.gz`).
 */

/** The used part of `node:fs`. */
export interface AssetFiles {
  readdirSync: (folder: string) => string[]
  readFileSync: (path: string) => Uint8Array<ArrayBuffer>
}

export interface AssetAnswer {
  status: 200 | 404 | 503
  headers: Record<string, string>
  body: Uint8Array<ArrayBuffer> | string
}

export interface PageAssets {
  /** The page itself. */
  page(acceptEncoding: string | undefined): AssetAnswer
  /** The text of a file that its program fills in before serving. Undefined if there is none. */
  text?(name: string): string | undefined
  /** A file of the page, by name. */
  file(name: string, acceptEncoding: string | undefined): AssetAnswer
}

/** The page runs only its own files, connects only to its own program, and cannot be framed. */
export const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

export const MISSING_PAGE = 'This build is without its pages: run npm run build.'

/**
 * Serves the page in `folder`. Files are read on each request, so that a hub does not hold a rarely used page in
 * memory.
 */
export function pageAssets({ readdirSync, readFileSync }: AssetFiles, folder: string): PageAssets {
  const plain = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }

  function names(): readonly string[] {
    try {
      return readdirSync(folder)
    } catch {
      return []
    }
  }

  function read(name: string, accepted: string, cache: string): AssetAnswer | undefined {
    const there = names()
    const type = types[name.slice(name.lastIndexOf('.') + 1)]
    if (type === undefined || !there.includes(name)) return undefined
    const encoding = (['br', 'gzip'] as const).find((one) => new RegExp(`\\b${one}\\b`).test(accepted))
    const packed = encoding && `${name}.${encoding === 'br' ? 'br' : 'gz'}`
    const isPacked = packed !== undefined && there.includes(packed)
    return {
      status: 200,
      headers: {
        'content-type': type,
        'cache-control': cache,
        vary: 'accept-encoding',
        ...(isPacked && { 'content-encoding': encoding! }),
      },
      body: readFileSync(`${folder}/${isPacked ? packed : name}`),
    }
  }

  return {
    page(accepted = '') {
      const found = read('index.html', accepted, 'no-store')
      if (!found) return { status: 503, headers: plain, body: `${MISSING_PAGE}\n` }
      return { ...found, headers: { ...found.headers, 'content-security-policy': pagePolicy } }
    },
    text(name) {
      return names().includes(name) ? new TextDecoder().decode(readFileSync(`${folder}/${name}`)) : undefined
    },
    file(name, accepted = '') {
      // A name with a hash always has the same content.
      const found = name.endsWith('.html') ? undefined : read(name, accepted, 'max-age=31536000, immutable')
      return found ?? { status: 404, headers: plain, body: 'There is no such file.\n' }
    },
  }
}
