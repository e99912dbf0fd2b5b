import axe from 'axe-core'
import * as files from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { type BrowserContext, chromium, type Locator, type Page } from 'playwright-core'
import { onTestFinished, vi } from 'vitest'
import { buildPages, pages } from '../../edge/packaging/pages.ts'
import { type PageAssets, pageAssets } from '../../protocol/page-assets.ts'
import { chromiumFlags } from './chromium.ts'
import { onPath } from './on-path.ts'

const root = resolve(import.meta.dirname, '../..')
const out = join(root, '.build/pages')

/** A page of a workspace, by its folder; it is built again if its sources have changed. */
export async function builtPage(
  workspace: 'cloud' | 'edge' | 'simulator',
  room = '',
): Promise<{ folder: string; assets: PageAssets }> {
  await buildOnce(workspace)
  const folder = join(out, pages.find(({ source }) => source.startsWith(`${workspace}/${room}`))!.assets)
  return { folder, assets: pageAssets(files, folder) }
}

/** Builds a page once for all workers of a run, which would overwrite one another; tmpdir is the run's own. */
async function buildOnce(workspace: 'cloud' | 'edge' | 'simulator'): Promise<void> {
  const [begun, ended] = ['building', 'built'].map((state) => join(tmpdir(), `${state}-${workspace}`)) as [
    string,
    string,
  ]
  try {
    files.mkdirSync(begun)
  } catch {
    return vi.waitUntil(() => files.existsSync(ended), { timeout: 150_000, interval: 100 }).then(() => {})
  }
  try {
    await buildPages(root, out, [workspace])
  } finally {
    files.writeFileSync(ended, '')
  }
}

/** Time that a busy machine may need to show something, in milliseconds. */
export const PATIENCE_MS = 60_000

export interface Visit {
  width: number
  colorScheme: 'light' | 'dark'
  /** Whether the device has a touch screen. */
  hasTouch: boolean
}

export interface Browser {
  /**
   * A separate page, closed at the end of the test; `problems` collects the errors of its console.
   */
  open(url: string, visit?: Partial<Visit>): Promise<{ page: Page; problems: string[] }>
  close(): Promise<void>
}

export async function openBrowser(): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: onPath('chromium')!, args: chromiumFlags })
  let present: BrowserContext | undefined
  return {
    async open(url, { width = 1400, colorScheme = 'light', hasTouch = false } = {}) {
      // One page at a time: an abandoned page would still receive changes.
      await present?.close()
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, hasTouch })
      present = context
      // A page of a failed try would send its changes to the hub of the second try.
      onTestFinished(() => context.close())
      const page = await context.newPage()
      page.setDefaultTimeout(PATIENCE_MS)
      const problems: string[] = []
      page.on('pageerror', (error) => problems.push(error.message))
      page.on('console', (line) => line.type() === 'error' && problems.push(line.text()))
      await page.goto(url)
      return { page, problems }
    },
    close: () => browser.close(),
  }
}

/** Presses Tab until an element with this name has the focus. */
export async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let step = 0; step < 100; step += 1) {
    await page.keyboard.press('Tab')
    const label = await page.evaluate<string>(
      "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent",
    )
    if (name.test(label.trim())) return
  }
  throw new Error(`Tab reaches no ${name.source}`)
}

/** Touches an element for longer than a second. */
export async function touchLong(page: Page, target: Locator): Promise<void> {
  await target.scrollIntoViewIfNeeded()
  const { x, y, width, height } = (await target.boundingBox())!
  const devtools = await page.context().newCDPSession(page)
  const touchPoints = [{ x: x + width / 2, y: y + height / 2 }]
  await devtools.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints })
  await page.waitForTimeout(1300)
  await devtools.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
}

/** Problems that axe-core rates as serious or worse, one line each. */
export async function seriousProblems(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  // Colours in a transition are not judged.
  await page.evaluate(`{
    const still = new CSSStyleSheet()
    still.replaceSync('*, ::before, ::after { transition: none !important }')
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, still]
  }`)
  const found: { id: string; impact: string; nodes: { html: string }[] }[] = await page.evaluate(
    'axe.run({ resultTypes: ["violations"], selectors: false }).then(({ violations }) => violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ html }) => ({ html })) })))',
  )
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`)
}

/** How much wider the page is than its window, in pixels. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - innerWidth')

/** Size of a page's script and style as sent, in bytes. */
export const weightOf = (folder: string): number =>
  files
    .readdirSync(folder)
    .filter((name) => /\.(js|css)\.br$/.test(name))
    .reduce((sum, name) => sum + files.statSync(join(folder, name)).size, 0)

const writesReadmePictures = (): boolean => process.env['README_PICTURES'] === '1'

/**
 * Writes pictures of the pages to the folder `PAGE_PICTURES`, if it is set. Pictures of a workspace are in
 * its README, and only `npm run pictures` renews them.
 */
export async function picture(page: Page, name: string, workspace?: 'edge' | 'simulator'): Promise<void> {
  const folder = process.env['PAGE_PICTURES']
  if (folder !== undefined) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
  if (workspace === undefined || !writesReadmePictures()) return
  const before = page.viewportSize()!
  await page.setViewportSize(README_SIZES[workspace])
  await page.evaluate('scrollTo(0, 0)')
  await writePicture(page, join(root, workspace, 'pictures', `${name}.jpg`))
  await page.setViewportSize(before)
}

/**
 * Writes the first picture of README: a customer's telephone beside the picture of the hub. Returns false if it is not
 * asked for. Otherwise the hub's page replaces the telephone's.
 */
export async function purchasePicture(telephone: Page, openHub: () => Promise<Page>): Promise<boolean> {
  if (!writesReadmePictures()) return false
  await telephone.setViewportSize({ width: 390, height: PURCHASE_HEIGHT })
  await telephone.evaluate('scrollTo(0, 0)')
  const images = [await telephone.screenshot()]
  const page = await openHub()
  await page.setViewportSize({ width: 900, height: PURCHASE_HEIGHT })
  images.push(await page.screenshot())
  await page.setViewportSize({ width: 390 + 900 + 60, height: PURCHASE_HEIGHT + 40 })
  const shown = images.map((image) => `<img src="data:image/png;base64,${image.toString('base64')}">`)
  await page.goto('about:blank')
  await page.setContent(
    `<style>body { margin: 20px; display: flex; gap: 20px; background: #cbd5e1 } img { border-radius: 12px }</style>${shown.join('')}`,
  )
  await writePicture(page, join(root, 'cloud', 'pictures', 'purchase.jpg'))
  return true
}

/** Writes the page as it is shown, in the highest quality that is small enough. */
async function writePicture(page: Page, path: string): Promise<void> {
  files.mkdirSync(dirname(path), { recursive: true })
  for (const quality of [85, 75, 65, 55, 45, 35]) {
    const image = await page.screenshot({ type: 'jpeg', quality })
    if (image.length <= MOST_PICTURE_BYTES) return files.writeFileSync(path, image)
  }
  throw new Error(`${path} is too large`)
}

/** Size of the picture of a page in a README, in pixels. */
const README_SIZES = { simulator: { width: 1100, height: 1000 }, edge: { width: 390, height: 844 } }

const PURCHASE_HEIGHT = 760

/** Maximum size of a picture in a README. */
const MOST_PICTURE_BYTES = 80_000
