import type { Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { listen, type HttpServer } from '../../cloud/platform/http/listen.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { builtPage } from '../support/browser.ts'
import { emptySqlite } from '../world/database.ts'
import { openService, type Service } from '../world/service.ts'

/** A demo service that listens at a port of this machine. It stops at the end of the test. */
export interface Served {
  at: Service
  port: number
  /** `http://127.0.0.1:PORT` */
  base: string
  /** Stops listening: the service is away. */
  leave(): Promise<void>
  /** Listens again at the same port. */
  comeBack(): Promise<void>
}

/** The folders of the pages. */
const rooms = { console: 'console', shopPage: 'shop', docs: '' } as const

type Options = Parameters<typeof openService>[1] & {
  /** The clock of the service moves with the real one. */
  isMoving?: boolean
}

export async function serveDemo(
  pages: readonly (keyof typeof rooms)[],
  { isMoving = false, ...options }: Options = {},
): Promise<Served> {
  for (const page of pages) options[page] = (await builtPage('cloud', rooms[page])).assets
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const at = await openService(() => Promise.resolve(db), { isDemo: true, ...options })
  // A test that moves the clock by a day makes thousands of polls, each of which would queue it.
  await at.cloud.work.ensureRecurring()
  at.cloud.start()
  const serve = (port: number): Promise<HttpServer> =>
    listen(at.cloud.app, { host: '127.0.0.1', port, runtime: systemRuntime(), bounds: defaultLimits.http })
  if (isMoving) {
    const moving = setInterval(() => at.shop.clock.advance(200), 200)
    onTestFinished(() => clearInterval(moving))
  }
  let server = await serve(0)
  const { port } = server
  onTestFinished(async () => {
    await at.cloud.endStreams()
    await server.close(0)
  })
  return {
    at,
    port,
    base: `http://127.0.0.1:${port}`,
    leave: () => server.close(0),
    comeBack: async () => void (server = await serve(port)),
  }
}

/** Puts one unit of a product into the cart of the shop. */
export async function addProduct(page: Page, product: number): Promise<void> {
  const card = page.locator(`[data-product="${product}"]`)
  await card.getByRole('button', { name: /^Add one/ }).click()
  await card.locator('[aria-live]').waitFor()
}

/** Signs the demo's customer in at the shop. */
export async function signInAtShop(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Customer' }).click()
  await page.getByText('Signed in as customer@example.org').waitFor()
}
