import type { Page } from 'playwright-core'
import { describe, expect, onTestFinished } from 'vitest'
import { lineTo } from './line.ts'
import { TOKEN, press, select, serveHub, useHub } from './served-hub.ts'
import { browserTest } from './set-up.ts'

const { served, hub } = useHub()

/** Opens the hub's page with time limits of a tenth. */
async function visitInHaste(url: string) {
  const { page } = await served.browser.open('about:blank')
  await page.addInitScript(`{
    const timeout = AbortSignal.timeout
    AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 10)
  }`)
  await page.goto(`${url}#token=${TOKEN}`)
  await page.waitForSelector('[data-device="bin-1"]')
  return page
}

describe('the page of a hub that is away', () => {
  browserTest(
    'the page of a hub without power says that the hub is away, and a pressed action ends with words',
    async () => {
      const line = await lineTo(served.url)
      const page = await visitInHaste(line.url)
      await page.waitForSelector('[data-connected=true]')
      await select(page, 'bin-3')
      line.freeze()
      await press(page, 'Open')
      await page.waitForSelector('[data-notice=bad]:has-text("It does not answer")')
      await page.waitForSelector('[data-connected=false]:has-text("away since")')
    },
    60_000,
  )

  browserTest('a logout that did not reach the hub is reported, and the login stays', async () => {
    const { page, problems } = await served.visit()
    await page.route('**/api/logout', (route) => route.abort())
    await page.click('[aria-label="Log out"]')
    await page.waitForSelector('[data-notice=bad]:has-text("You are still logged in.")')
    expect(await page.locator('[data-device="bin-1"]').count()).toBe(1)
    expect(problems.filter((one) => !one.includes('ERR_FAILED'))).toEqual([])
    await page.unroute('**/api/logout')
    await page.click('[aria-label="Log out"]')
    await page.waitForSelector('input[name=token]')
  })

  browserTest('a count without an answer delays later counts only until its time limit', async () => {
    const page = await visitInHaste(served.url)
    let isLost = false
    await page.route(/api\/stock\//, async (route) => {
      if (isLost) await route.continue()
      isLost = true
    })
    await page.goto(`${served.url}#refill`)
    for (const row of ['1/1/1', '1/1/2']) {
      await page.getByLabel(`Row ${row}: units`).fill('9')
      await page.getByLabel(`Row ${row}: units`).press('Enter')
    }
    await expect
      .poll(() => hub.asked)
      .toEqual([
        ['count', { cabinet: 1, shelf: 1, row: 1 }, 9],
        ['count', { cabinet: 1, shelf: 1, row: 2 }, 9],
      ])
  })

  browserTest(
    'counts that two tabs of the page could not send, and their typed numbers, are all there after a reload',
    async () => {
      const { page } = await served.visit()
      const second = await page.context().newPage()
      const offline = (tab: Page) => tab.route(/api\/stock\//, (route) => route.abort())
      for (const tab of [page, second]) {
        await offline(tab)
        await tab.goto(`${served.url}#refill`)
        await tab.waitForSelector('[data-refill]')
      }
      const field = (tab: Page, row: string) => tab.getByLabel(`Row ${row}: units`)
      const enter = async (tab: Page, row: string, units: string): Promise<void> => {
        await tab.bringToFront()
        await field(tab, row).fill(units)
        await field(tab, row).press('Enter')
      }
      const unsent = (tab: Page, text: string) =>
        tab.waitForSelector(`[data-refill]:has-text("${text} not sent yet")`)
      await enter(page, '1/1/1', '9')
      await unsent(second, '1 is')
      await enter(second, '1/1/2', '8')
      await field(second, '1/1/5').fill('4')
      await enter(page, '1/1/3', '7')
      await page.reload()
      await unsent(page, '3 are')
      expect(await field(page, '1/1/5').inputValue()).toBe('4')
      await second.close()
      await page.unroute(/api\/stock\//)
      await expect
        .poll(() => hub.asked.map((asked) => (asked as unknown[]).at(-1)), { timeout: 30_000 })
        .toEqual([9, 8, 7])
    },
    60_000,
  )

  browserTest(
    'a count that did not reach one hub is not sent to another hub at the same address, and reaches its own later',
    async () => {
      const other = await serveHub(undefined, 2)
      onTestFinished(() => other.close())
      const line = await lineTo(served.url)
      const { page } = await served.browser.open(`${line.url}#token=${TOKEN}`)
      await page.waitForSelector('[data-device="bin-1"]')
      await page.route(/api\/stock\//, (route) => route.abort())
      await page.goto(`${line.url}#refill`)
      const row = page.locator('[data-row="1/1/1"]')
      await row.getByLabel('units').fill('11')
      await row.getByRole('button', { name: /^Save count/ }).click()
      await page.locator('[data-row="1/1/1"][data-unsent="true"]').waitFor()
      // The login of another tab makes the open page a page of the second hub.
      line.leadTo(other.url)
      await page.unroute(/api\/stock\//)
      await page.request.post(`${line.url}api/login`, { data: { token: TOKEN } })
      await page.getByText('Hub 2').first().waitFor()
      await page.goto(`${line.url}#`)
      await page.locator('[data-other-hubs]', { hasText: 'Hub 1, row 1/1/1: counted 11' }).waitFor()
      await page.waitForTimeout(6000)
      expect([hub.asked, other.hub.asked]).toEqual([[], []])
      line.leadTo(served.url)
      await page.goto('about:blank')
      await page.goto(`${line.url}#token=${TOKEN}`)
      await expect.poll(() => hub.asked).toEqual([['count', { cabinet: 1, shelf: 1, row: 1 }, 11]])
      expect(other.hub.asked).toEqual([])
    },
    60_000,
  )
})
