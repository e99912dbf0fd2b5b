import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { createClient, unwrap } from '../../protocol/client/client.ts'
import { useDemo } from './running-demo.ts'
import { browserTest } from './set-up.ts'

const demo = useDemo(2)

const SLOWLY = { timeout: 60_000, interval: 500 }
const rowInFocus = (page: Page): Promise<string | undefined> =>
  page.evaluate('/^Row (.*): units$/.exec(document.activeElement?.ariaLabel ?? "")?.[1]')

/** Types the units of as many rows, each with Enter, and returns the rows. */
async function refill(page: Page, count: number, units: string): Promise<string[]> {
  const rows: string[] = []
  for (let row = 0; row < count; row += 1) {
    await expect.poll(async () => (await rowInFocus(page)) ?? rows.at(-1), SLOWLY).not.toBe(rows.at(-1))
    rows.push((await rowInFocus(page))!)
    await page.keyboard.type(units)
    await page.keyboard.press('Enter')
  }
  return rows
}

browserTest(
  'a technician refills 30 rows with the network gone for the second half; each count arrives once, with the person’s name, and a removed person is logged out',
  async () => {
    const { edge_url, base_url, owner } = demo.file()
    demo.larder('people', 'add', '--name', 'Ann Larkin', '--pin', '271828', '--hubs', '1')
    const login = async () => {
      const body = JSON.stringify({ name: 'Ann Larkin', pin: '271828' })
      return (await fetch(`${edge_url}/api/login`, { method: 'POST', body })).status
    }
    await expect.poll(login, SLOWLY).toBe(200)
    const page = await demo.visit('edge', `${edge_url}/#token=${demo.token()}`, 390)
    await page.click('[aria-label="Log out"]')
    await page.getByLabel('Your name').fill('Ann Larkin')
    await page.getByLabel('Your PIN').fill('271828')
    await page.click('button:text-is("Log in")')
    await page.click('a:has-text("Refill")')
    await page.waitForSelector('[data-refill^="0/"]')

    // The hub books the first count, but its answer is lost: the page sends the count again.
    let isLost = false
    await page.route('**/api/stock/count', async (route) => {
      if (isLost) return route.continue()
      isLost = true
      await route.fetch()
      await route.abort()
    })
    const before = await refill(page, 15, '3')
    await page.waitForSelector('[data-refill^="15/"]:not(:has-text("not sent yet"))', { timeout: 60_000 })
    await page.context().setOffline(true)
    const after = await refill(page, 15, '4')
    await page.waitForSelector('[data-refill^="30/"]:has-text("15 are not sent yet")')
    expect(new Set([...before, ...after]).size).toBe(30)
    await page.context().setOffline(false)
    await page.waitForSelector('[data-refill^="30/"]:not(:has-text("not sent yet"))', { timeout: 60_000 })

    const counts = () => demo.audited().filter(({ action }) => action === 'hub.count_row')
    await expect.poll(() => counts().length, SLOWLY).toBeGreaterThanOrEqual(30)
    const booked = counts()
    expect(booked.map(({ actor, object, detail }) => [actor, object, detail.after])).toEqual([
      ...before.map((row) => ['person:Ann Larkin', `row-${row}`, 3]),
      ...after.map((row) => ['person:Ann Larkin', `row-${row}`, 4]),
    ])
    expect(booked.every(({ detail }) => detail.before !== undefined)).toBe(true)
    const client = createClient({ baseUrl: base_url, apiKey: owner.api_key })
    const facings = unwrap(await client.call('GET /owners/hubs/facings', { query: { hub_id: 1 } }))
    const units = new Map(facings.map((one) => [`${one.cabinet}/${one.shelf}/${one.row}`, one.quantity]))
    expect([...before, ...after].map((row) => units.get(row))).toEqual([
      ...before.map(() => 3),
      ...after.map(() => 4),
    ])

    demo.larder('people', 'remove', '--name', 'Ann Larkin')
    await page.waitForSelector('button:text-is("Log in")')
    expect((await page.request.get(`${edge_url}/api/state`)).status()).toBe(401)
  },
  240_000,
)
