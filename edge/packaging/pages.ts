import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

/** A page that a program serves: its sources, and the folder in which the program finds the bundle. */
export interface Page {
  workspace: string
  source: string
  assets: string
  /** Further sources of the page. */
  also?: readonly string[]
  /** Its HTML files (default: only `index.html`). */
  entries?: readonly string[]
  /** Makes further files in the folder of the bundle. */
  complete?: (root: string, folder: string) => Promise<unknown>
}

export const pages: readonly Page[] = [
  { workspace: 'edge', source: 'edge/local-api/page', assets: 'edge/local-api/assets' },
  { workspace: 'simulator', source: 'simulator/console/page', assets: 'simulator/console/assets' },
  {
    workspace: 'cloud',
    source: 'cloud/docs/page',
    assets: 'cloud/docs/assets',
    also: ['cloud/docs/guides', 'cloud/docs/operating', 'protocol/contract', 'edge/packaging/pages.ts'],
    entries: ['index.html', 'reference.html'],
    complete: renderGuides,
  },
  {
    workspace: 'cloud',
    source: 'cloud/console/page',
    assets: 'cloud/console/assets',
    also: ['protocol/client'],
  },
  { workspace: 'cloud', source: 'cloud/shop/page', assets: 'cloud/shop/assets', also: ['protocol/client'] },
]

/** Sources of all pages, in addition to their own folder. */
const shared = ['protocol/ui', 'protocol/model', 'package-lock.json', 'edge/packaging/pages.ts']
const STAMP = 'made-of.txt'

/**
 * Makes the pages of some workspaces below `out`: bundled, named by content hash, compressed. A page with
 * unchanged sources is not made again, and then the bundler is not loaded.
 */
export async function buildPages(root: string, out: string, workspaces: readonly string[]): Promise<Page[]> {
  const common = hashOf(root, shared)
  const wanted = pages
    .filter(({ workspace }) => workspaces.includes(workspace))
    .map((page) => ({ page, stamp: `${common} ${hashOf(root, [page.source, ...(page.also ?? [])])}\n` }))
    .filter(({ page, stamp }) => stampOf(join(out, page.assets)) !== stamp)
  for (const { page, stamp } of wanted) await bundle(root, out, page, stamp)
  return wanted.map(({ page }) => page)
}

async function bundle(root: string, out: string, page: Page, stamp: string): Promise<void> {
  const { source, assets, entries = ['index.html'], complete } = page
  const { build } = await import('vite')
  const { default: tailwindcss } = await import('@tailwindcss/vite')
  const folder = resolve(out, assets)
  rmSync(folder, { recursive: true, force: true })
  await build({
    configFile: false,
    root: join(root, source),
    base: './',
    logLevel: 'warn',
    plugins: [tailwindcss()],
    build: {
      outDir: folder,
      emptyOutDir: true,
      assetsDir: '',
      target: 'es2022',
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      // The reference is one large program; browsers load it once and cache it.
      chunkSizeWarningLimit: 4000,
      rolldownOptions: {
        input: entries.map((entry) => join(root, source, entry)),
        checks: { pluginTimings: false },
      },
    },
  })
  await complete?.(root, folder)
  for (const name of readdirSync(folder)) compress(join(folder, name))
  writeFileSync(join(folder, STAMP), stamp)
}

function compress(path: string): void {
  const content = readFileSync(path)
  // The highest quality takes 14 times as long, 7 s of CPU time at a first start, and saves a tenth of the
  // bytes.
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }
  writeFileSync(`${path}.br`, brotliCompressSync(content, quality))
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }))
}

function stampOf(folder: string): string | undefined {
  const path = join(folder, STAMP)
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

function hashOf(root: string, places: readonly string[]): string {
  const hash = createHash('sha256')
  for (const place of places)
    for (const path of below(root, place)) hash.update(`${path}\n`).update(readFileSync(join(root, path)))
  return hash.digest('hex')
}

function below(root: string, place: string): string[] {
  if (/\.[a-z]+$/.test(place)) return [place]
  return readdirSync(join(root, place), { withFileTypes: true })
    .sort((one, other) => one.name.localeCompare(other.name))
    .flatMap((entry) => {
      const path = `${place}/${entry.name}`
      return entry.isDirectory() ? below(root, path) : [path]
    })
}

/** A guide as the cloud serves it: HTML in which only values of the running service are left as `{{name}}`. */
interface RenderedGuide {
  /** Its readers: callers of the API, or operators. */
  group: 'Guides' | 'Operating'
  title: string
  html: string
}

/**
 * Renders the guides of the API into `guides.json`, in the order of their names. Returns the file name of the
 * picture that one guide shows.
 */
export async function renderGuides(root: string, folder: string): Promise<string> {
  const { micromark } = await import('micromark')
  const { gfm, gfmHtml } = await import('micromark-extension-gfm')
  const picture = readFileSync(join(root, 'cloud/docs/page/orders.svg'))
  const pictureName = `orders-${createHash('sha256').update(picture).digest('hex').slice(0, 8)}.svg`
  writeFileSync(join(folder, pictureName), picture)
  const changes = readFileSync(join(root, 'protocol/contract/CHANGELOG.md'), 'utf8')
  const words: Readonly<Record<string, string>> = {
    orders_picture: `./${pictureName}`,
    changes: changes.replace(/^# .*\n/, '').replaceAll(/^#/gm, '##'),
  }
  const pagesOf = (group: RenderedGuide['group'], place: string): RenderedGuide[] =>
    readdirSync(join(root, place))
      .toSorted()
      .map((name) => {
        const text = readFileSync(join(root, place, name), 'utf8').replaceAll(
          /\{\{(\w+)\}\}/g,
          (whole, word: string) => words[word] ?? whole,
        )
        const [first = ''] = text.split('\n', 1)
        const html = micromark(text.slice(first.length), { extensions: [gfm()], htmlExtensions: [gfmHtml()] })
        return { group, title: first.replace(/^# /, ''), html }
      })
  const guides = [...pagesOf('Guides', 'cloud/docs/guides'), ...pagesOf('Operating', 'cloud/docs/operating')]
  writeFileSync(join(folder, 'guides.json'), JSON.stringify(guides))
  return pictureName
}
