import type { Page } from 'playwright-core'
import { decodeQR } from 'qr/decode.js'
import { describe, expect, vi } from 'vitest'
import { createClient, unwrap } from '../../protocol/client/client.ts'
import { purchasePicture } from '../support/browser.ts'
import { servePages } from './cloud-pages.ts'
import { useDemo } from './running-demo.ts'
import { addProduct } from './served.ts'
import { browserTest } from './set-up.ts'

const demo = useDemo(2)

/** The text of a QR code, as a telephone reads it from the picture. */
async function scanned(page: Page, svg: string): Promise<string> {
  const [width, height] = [400, 400]
  const pixels: number[] = await page.evaluate(`(async () => {
    const image = new Image()
    image.src = 'data:image/svg+xml,' + encodeURIComponent(${JSON.stringify(svg)})
    await image.decode()
    const canvas = new OffscreenCanvas(${width}, ${height}).getContext('2d')
    canvas.fillStyle = 'white'
    canvas.fillRect(0, 0, ${width}, ${height})
    canvas.drawImage(image, 0, 0, ${width}, ${height})
    return [...canvas.getImageData(0, 0, ${width}, ${height}).data]
  })()`)
  return decodeQR({ width, height, data: Uint8Array.from(pixels) })
}

describe('journeys', () => {
  browserTest(
    'a stranger scans the code at the door, buys two products, reads that one jammed and is refunded, and takes the other',
    async () => {
      const { step, simulator } = demo
      const { page, problems } = await demo.browser.open('about:blank', { width: 390 })
      page.setDefaultTimeout(120_000)
      const { url, svg } = JSON.parse(demo.larder('hubs', 'qr', '1')) as { url: string; svg: string }
      expect(await scanned(page, svg)).toBe(url)

      const { rows } = await demo.state()
      // Each is in one row only: the hub would take a jammed product from another row.
      const [jammed, other] = [1, 2].map((cabinet) =>
        rows.find(
          ({ cabinet: of, product_id: id, units }) =>
            of === cabinet && units > 1 && rows.filter(({ product_id }) => product_id === id).length === 1,
        ),
      )
      await step({ fault: { type: 'jam', target: `cabinet-${jammed!.cabinet}` } })
      await servePages(page.context(), demo.file().base_url)
      await page.goto(url)
      for (const { product_id } of [jammed!, other!]) await addProduct(page, product_id!)
      await page.locator('[data-show-cart]').click()
      await page.locator('[data-pay]').click()
      await page.locator('[data-status="READY"]').waitFor()
      await page.getByText(/^1 × .* did not come out\.$/).waitFor()
      await page.getByText(/^You get back \$\d+\.\d\d\.$/).waitFor()
      const open = page.getByRole('button', { name: /^Open bin \d$/ })
      const bin = (await open.textContent())!.trim().slice(-1)
      await open.click()
      await page.getByText(`Bin ${bin} is open. Take your products and close the door.`).waitFor()
      const openHub = () => demo.visit('simulator', `${demo.file().simulator_url}/`, 900)
      if (await purchasePicture(page, openHub)) return
      const hand = { action: 'take_items', target: `bin-${bin}` }
      expect(await simulator.ask('POST', '/api/hubs/1/act', hand)).toMatchObject({ units: 1 })
      await page.locator('[data-status="COMPLETED"]').waitFor()
      expect(problems).toEqual([])

      // The owner reads in the hub's own log that the row was blocked.
      const { base_url, owner } = demo.file()
      const client = createClient({ baseUrl: base_url, apiKey: owner.api_key })
      const messages = async () => {
        const read = await client.call('GET /owners/hubs/logs', { query: { hub_id: 1 } })
        return read.ok ? read.data.data.map(({ fields }) => fields['code']) : []
      }
      await expect.poll(messages, { timeout: 90_000, interval: 5000 }).toContain('row_blocked')
    },
    500_000,
  )

  browserTest(
    'a technician raises a jam during an order, sees it in the picture and clears it, and the order ends correctly',
    async () => {
      const { step, acts } = demo
      const page = await demo.visit('simulator', `${demo.file().simulator_url}/`, 1400)
      await page.click('[data-device="cabinet-1"]')
      await page.click('summary:has-text("Raise a fault here")')
      await page.selectOption('aside select[name=type]', 'jam_without_motion')
      const before = (await acts()).length
      const { rows } = await demo.state()
      // The row of a product without a second row, from which the hub would take it.
      const only = rows.find(
        ({ cabinet, product_id, units }) =>
          cabinet === 1 && units > 3 && rows.filter((other) => other.product_id === product_id).length === 1,
      )!
      const row = `${only.cabinet}/${only.shelf}/${only.row}`
      await step({ cart: { customer: 'ann', items: [{ row, units: 3 }] } })
      await step({ pay: { customer: 'ann' } })
      await vi.waitUntil(async () => (await acts()).length > before, { timeout: 20_000, interval: 20 })
      await page.click('aside button:text-is("Raise the fault")')
      await page.waitForSelector('[data-device="cabinet-1"][aria-label*="Fault: jam"]')
      await page.click('aside button:has-text("Clear")')
      await page.waitForSelector('[data-device="cabinet-1"]:not([aria-label*="Fault"])')
      await step({ wait_until: { order: { customer: 'ann', status: 'READY' }, within: '60 s' } })
      await step({ open: { customer: 'ann' } })
      await page.waitForSelector('[data-device^="bin-"][aria-label*="Door open"]')
      await step({ take: { customer: 'ann' } })
      await step({ wait_until: { order: { customer: 'ann', status: 'COMPLETED' } } })
      // Only units that jammed before the technician cleared the fault are refunded, and no unit drops twice.
      const dispensed = (await acts()).slice(before).filter(({ action }) => action === 'dispense')
      const dropped = dispensed.reduce((sum, { detail }) => sum + Number(detail['fallen'] ?? 0), 0)
      expect(dropped).toBeGreaterThan(0)
      const payment_status = dropped === 3 ? 'completed' : 'partially_refunded'
      await step({
        wait_until: { order: { customer: 'ann', dropped, refunded: 3 - dropped, payment_status } },
      })
    },
    120_000,
  )

  browserTest(
    'a technician counts and restocks a cabinet by phone while the cloud is down; the cloud receives both later, with the person’s name',
    async () => {
      const { edge_url, base_url, owner } = demo.file()
      expect(await demo.tell('/programs/cloud/stop')).toBe(200)
      const page = await demo.visit('edge', `${edge_url}/#token=${demo.token()}`, 390)
      await page.click('[data-device="cabinet-2"]')
      await page.click('[data-shelf="1"] summary')
      const counted = page.locator('[data-row="2/1/1"]')
      await counted.getByLabel('units').fill('2')
      await counted.getByRole('button', { name: 'Save count 2' }).click()
      await counted.getByText(/· 2 of \d+ there/).waitFor()
      const restocked = page.locator('[data-row="2/1/2"]')
      const units = Number(/(\d+) of \d+ there/.exec((await restocked.textContent())!)![1])
      await restocked.getByLabel('one more').click()
      await restocked.getByRole('button', { name: /^Added/ }).click()
      await restocked.getByText(new RegExp(`· ${units + 1} of \\d+ there`)).waitFor()

      expect(await demo.tell('/programs/cloud/start')).toBe(200)
      const client = createClient({ baseUrl: base_url, apiKey: owner.api_key })
      const quantities = async () =>
        unwrap(await client.call('GET /owners/hubs/facings', { query: { hub_id: 1 } }))
          .filter(({ cabinet, shelf, row }) => cabinet === 2 && shelf === 1 && row <= 2)
          .map(({ quantity }) => quantity)
      await expect.poll(quantities, { timeout: 60_000, interval: 500 }).toEqual([2, units + 1])
      // Each action of the technician is in the audit log, once.
      const audited = () => demo.audited().map(({ action, object }) => [action, object])
      await expect.poll(audited, { timeout: 30_000, interval: 1000 }).toEqual([
        ['hub.count_row', 'row-2/1/1'],
        ['hub.restock_row', 'row-2/1/2'],
      ])
    },
    150_000,
  )
})
