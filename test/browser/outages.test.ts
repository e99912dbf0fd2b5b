import { expect, onTestFinished } from 'vitest'
import { grantRole } from '../../cloud/platform/credentials/roles.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { programFolder, startCloud } from '../cloud/support/program.ts'
import { startPostgres } from '../process/chaos/postgres.ts'
import { openBrowser, picture } from '../support/browser.ts'
import { freePorts } from '../support/ports.ts'
import { missing, needs } from '../support/services.ts'
import { openShop } from '../world/shop.ts'
import { servePages } from './cloud-pages.ts'
import { addProduct } from './served.ts'

const runtime = systemRuntime()
/** Time that a busy machine may need, in milliseconds. */
const PATIENCE_MS = 90_000
const TEST_MS = 500_000
const HOUR_MS = 3_600_000

needs('chromium and postgres', () => missing('chromium') ?? missing('postgres'))(
  'shop and console state that the database, the cloud or the hub is away, keep what they show, and recover without a reload',
  async () => {
    const folder = programFolder()
    const [databasePort, port, mqtt] = (await freePorts(3)) as [number, number, number]
    const server = await startPostgres({ folder, port: databasePort, runtime })
    onTestFinished(() => server.remove())
    const db = openDatabase({ url: server.url })
    await db.migrate()
    await openShop(db, { products: [{ price: 250, quantity: 1000 }] })
    await grantRole(db.kysely, runtime, { identity: 'demo-owner', role: 'owner', hubs: [1] })
    const hear = (at: number) => db.kysely.updateTable('hub_sessions').set({ last_heard_at: at }).execute()
    await hear(runtime.clock.now() + HOUR_MS)
    const environment = {
      DATABASE_URL: server.url,
      DATA_DIR: folder,
      PORT: String(port),
      MQTT_PORT: String(mqtt),
      NODE_ENV: 'test',
    }
    let cloud = startCloud(environment)
    await cloud.ready()
    const base = `http://127.0.0.1:${port}`
    const browser = await openBrowser()
    onTestFinished(() => browser.close())
    const { page: shop } = await browser.open('about:blank', { width: 390 })
    await servePages(shop.context(), base)
    const owner = await shop.context().newPage()
    for (const page of [shop, owner]) page.setDefaultTimeout(PATIENCE_MS)
    await owner.goto(`${base}/console/today`)
    await owner.getByRole('link', { name: 'Sign in' }).click()
    await owner.getByRole('button', { name: 'Owner' }).click()
    // Only the first request of a chain of redirects is answered in the browser.
    await owner.waitForURL(`${base}/console/today`)
    await owner.reload()
    await owner.locator('[data-card="hubs"]').waitFor()
    // Both pages have one session: the cookie of the browser.
    await shop.bringToFront()
    await shop.goto(`${base}/shop/1`)
    await addProduct(shop, 1)
    await owner.evaluate('globalThis.isSamePage = true')
    await shop.evaluate('globalThis.isSamePage = true')

    /** Both pages state the outage with what they had; afterwards both are current again. */
    async function during(name: string, work: () => Promise<unknown>): Promise<void> {
      const back = await work()
      await shop.bringToFront()
      await shop.locator('[data-away]').waitFor()
      expect(await shop.locator('[data-product="1"] [aria-live]').textContent()).toBe('1')
      await picture(shop, `shop-${name}-390-light`)
      await owner.bringToFront()
      await owner.locator('[data-connected="false"]').waitFor()
      expect(await owner.locator('[data-card="hubs"]').count()).toBe(1)
      await picture(owner, `owner-${name}-390-light`)
      await (back as () => Promise<unknown>)()
      await owner.locator('[data-connected="true"]').waitFor()
      await shop.bringToFront()
      await shop.locator('[data-away]').waitFor({ state: 'hidden' })
    }
    await during('database-away', async () => {
      await server.stop()
      return () => server.start()
    })
    await during('cloud-away', async () => {
      cloud.child.kill('SIGKILL')
      await cloud.exited
      return () => {
        cloud = startCloud(environment)
        return cloud.ready()
      }
    })
    await hear(0)
    await shop.getByText('This shop is offline.').waitFor()
    await owner.bringToFront()
    await owner.locator('[data-hub="1"]').getByText('is offline').waitFor()
    await picture(owner, 'owner-hub-offline-390-light')
    await hear(runtime.clock.now() + HOUR_MS)
    await owner.locator('[data-hub="1"]').getByText('sells').waitFor()
    await shop.bringToFront()
    await shop.getByText('This shop is offline.').waitFor({ state: 'hidden' })
    await shop.locator('[data-show-cart]').click()
    await shop.locator('[data-pay]').click()
    await shop.locator('[data-status="QUEUED"]').waitFor()
    expect([await shop.evaluate('isSamePage'), await owner.evaluate('isSamePage')]).toEqual([true, true])
    await db.close()
  },
  TEST_MS,
)
