import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { pinDigestOf } from '../../protocol/model/pin.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { overflowOf, picture, seriousProblems } from '../support/browser.ts'
import { hold, select, useHub } from './served-hub.ts'
import { browserTest } from './set-up.ts'

const { served, hub } = useHub()

const focused = (page: Page): Promise<string> =>
  page.evaluate(
    '(document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent).trim()',
  )
const alarm = (code: string, subject: string) => ({
  code,
  subject,
  detail: 'test',
  raised_at: Date.UTC(2026, 2, 1),
})
const countOf = (location: object, units: number) => ['count', location, units]

describe('a person at the hub’s page', () => {
  browserTest('on a phone “Show it” opens the device, and the row of an alarm', async () => {
    hub.state.alarms = [alarm('row_blocked', 'row 2/3/4'), alarm('bin_fault', 'bin 3')]
    const { page } = await served.visit()
    await page.getByRole('button', { name: 'Show it: Row 2/3/4' }).click()
    await expect.poll(() => focused(page)).toBe('Row 2/3/4: units')
    await expect.poll(() => page.locator('[data-row="2/3/4"]').isVisible()).toBe(true)
    await page.getByRole('button', { name: 'Show it: Bin 3' }).click()
    await expect.poll(() => focused(page)).toBe('Bin 3')
    const isInView = async (): Promise<boolean> => {
      const { y, height } = (await page.locator('[data-sentence-of="bin-3"]').boundingBox())!
      return y > 0 && y + height < 900
    }
    await expect.poll(isInView).toBe(true)
  })

  browserTest('a touch on a row of the picture opens the row, and the page shows its name', async () => {
    const { page } = await served.visit()
    const row = page.locator('[data-device="cabinet-3"] [data-picture-row="2/1"]')
    await expect.poll(() => row.locator('title').textContent()).toBe('Row 3/2/1: Snack 320, 6 of 12')
    await row.click()
    await expect.poll(() => focused(page)).toBe('Row 3/2/1: units')
  })

  browserTest('Enter saves a count and focuses the next row; the buttons keep their places', async () => {
    const { page } = await served.visit()
    await page.locator('[data-device="cabinet-2"] [data-picture-row="1/1"]').click()
    const places = () =>
      page
        .locator('[data-row="2/1/1"] button')
        .evaluateAll((all) => all.map((one) => (one as unknown as { offsetLeft: number }).offsetLeft))
    await expect.poll(() => focused(page)).toBe('Row 2/1/1: units')
    const before = await places()
    await page.keyboard.type('10')
    expect(await places()).toEqual(before)
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Row 2/1/2: units')
    await page.keyboard.type('0')
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Row 2/1/3: units')
    // The focus moves before the counts are sent.
    await expect
      .poll(() => hub.asked)
      .toEqual([countOf({ cabinet: 2, shelf: 1, row: 1 }, 10), countOf({ cabinet: 2, shelf: 1, row: 2 }, 0)])
    // The last row of a shelf is followed by the next shelf.
    await page.getByLabel('Row 2/1/6: units').focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => focused(page)).toBe('Row 2/2/1: units')
  })

  browserTest(
    'counts without network are stored, shown as not sent, survive a reload, and are sent when the hub returns',
    async () => {
      const { page } = await served.visit()
      const row = page.locator('[data-row="2/1/1"]')
      await page.evaluate('navigator.serviceWorker.ready.then(() => undefined)')
      await expect
        .poll(() => page.evaluate('caches.open("page").then((c) => c.keys()).then((k) => k.length)'))
        .toBeGreaterThan(2)
      await page.waitForTimeout(500)
      await page.locator('[data-device="cabinet-2"] [data-picture-row="1/1"]').click()
      await expect.poll(() => focused(page)).toBe('Row 2/1/1: units')
      await page.context().setOffline(true)
      await page.keyboard.type('7')
      await page.keyboard.press('Enter')
      await expect.poll(() => focused(page)).toBe('Row 2/1/2: units')
      await page.keyboard.type('9')
      await page.keyboard.press('Enter')
      await row.getByText('Not sent yet: counted 7').waitFor()
      await expect.poll(() => row.getByLabel('units').inputValue()).toBe('7')
      await page.reload()
      await page.waitForSelector('[data-device="bin-1"]')
      await page.waitForSelector('[data-connected=false]:has-text("away since")')
      await page.locator('[data-device="cabinet-2"] [data-picture-row="1/1"]').click()
      await row.getByText('Not sent yet: counted 7').waitFor()
      await page.getByLabel('Row 2/1/3: units').fill('4')
      expect(hub.asked).toEqual([])
      await page.context().setOffline(false)
      await expect.poll(() => hub.asked.length, { timeout: 20_000 }).toBe(2)
      expect(hub.asked).toEqual([
        countOf({ cabinet: 2, shelf: 1, row: 1 }, 7),
        countOf({ cabinet: 2, shelf: 1, row: 2 }, 9),
      ])
      await row.getByText('Not sent yet').waitFor({ state: 'detached' })
      await expect.poll(() => page.getByLabel('Row 2/1/3: units').inputValue()).toBe('4')
    },
    60_000,
  )

  browserTest(
    'a short touch unlocks no door and restarts no program; a long press or two key presses do',
    async () => {
      const { page } = await served.visit()
      await hold(page, 'Stop orders')
      await page.getByRole('button', { name: 'Undo' }).click()
      await expect
        .poll(() => hub.asked)
        .toEqual([
          ['hold', 'orders', true],
          ['hold', 'orders', false],
        ])
      hub.asked.length = 0
      const unlock = page.locator('#device button.hold:has-text("Unlock the main door")')
      const size = await unlock.boundingBox()
      await unlock.click()
      await unlock.click({ delay: 500 })
      await page.waitForTimeout(700)
      expect(hub.asked).toEqual([])
      expect(await unlock.textContent()).toContain('Hold for 1 second')
      expect(await unlock.boundingBox()).toEqual(size)
      await unlock.focus()
      await page.keyboard.press('Enter')
      await page.waitForTimeout(300)
      expect(hub.asked).toEqual([])
      await page.keyboard.press('Enter')
      await expect.poll(() => hub.asked).toEqual([['unlockDoor', 'main', 30_000]])
      await hold(page, 'Unlock the main door for 30 s')
      await expect.poll(() => hub.asked.length).toBe(2)
    },
  )

  browserTest(
    'the card of an incident names the product in its question, and counts the row below it',
    async () => {
      hub.state.alarms = []
      const { page } = await served.visit()
      const card = page.locator('[data-unknown]')
      await card.getByText('Did a unit of Snack 113 fall from row 1/1/4?').waitFor()
      await card.getByLabel('Row 1/1/4: units').fill('5')
      await card.getByLabel('Row 1/1/4: units').press('Enter')
      await expect.poll(() => hub.asked).toEqual([countOf({ cabinet: 1, shelf: 1, row: 4 }, 5)])
      // Among the shelves of its cabinet the row is shown once.
      await card.getByRole('button', { name: 'Show it' }).click()
      await expect.poll(() => focused(page)).toBe('Row 1/1/4: units')
      expect(await page.locator('[data-row="1/1/4"]').count()).toBe(1)
    },
  )

  browserTest(
    'a refill leads from row to row over all shelves, by Enter, by scanner and by one touch for a full row',
    async () => {
      const room = { '1/1/2': 2, '1/2/1': 0, '3/4/6': 11 }
      hub.state.stock = hub.state.stock.map((facing) => {
        const { cabinet, shelf, row } = facing.location
        const quantity = room[`${cabinet}/${shelf}/${row}` as keyof typeof room] ?? facing.capacity
        return { ...facing, quantity, blocked: null }
      })
      const { page } = await served.visit()
      await page.click('a:has-text("Refill: 3 rows")')
      await page.waitForSelector('[data-refill="0/3"]')
      await expect.poll(() => focused(page)).toBe('Row 1/1/2: units')
      await page.keyboard.type('12')
      await page.keyboard.press('Enter')
      await expect.poll(() => focused(page)).toBe('Row 1/2/1: units')
      // The scanner types the barcode of a row that is full.
      await page.keyboard.type('049000002110')
      await page.keyboard.press('Enter')
      await expect.poll(() => focused(page)).toBe('Row 2/1/2: units')
      await page.keyboard.type('11')
      await page.keyboard.press('Enter')
      await expect.poll(() => focused(page)).toBe('Row 3/4/6: units')
      await page.getByRole('button', { name: 'Row 3/4/6 is full: 12' }).click()
      await page.getByRole('button', { name: 'Row 1/2/1 is full: 12' }).click()
      await page.waitForSelector('[data-refill="4/4"]:has-text("Every row is done.")')
      expect(hub.asked).toEqual([
        countOf({ cabinet: 1, shelf: 1, row: 2 }, 12),
        countOf({ cabinet: 2, shelf: 1, row: 2 }, 11),
        countOf({ cabinet: 3, shelf: 4, row: 6 }, 12),
        countOf({ cabinet: 1, shelf: 2, row: 1 }, 12),
      ])
      for (const width of [390, 768])
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.setViewportSize({ width, height: 900 })
          await page.emulateMedia({ colorScheme })
          expect([width, await seriousProblems(page), await overflowOf(page)]).toEqual([width, [], 0])
          await picture(page, `refill-${width}-${colorScheme}`)
        }
    },
    120_000,
  )

  browserTest(
    'a person logs in with name and PIN, and the page asks for the login when the person is removed',
    async () => {
      const ann = { name: 'Ann', pin_digest: await pinDigestOf('271828', systemRuntime().random) }
      let people = [ann]
      hub.core.people = () => people
      const { page } = await served.browser.open(served.url, { width: 390 })
      await page.getByLabel('Your name').fill('Ann')
      await page.getByLabel('Your PIN').fill('271828')
      await page.click('button:text-is("Log in")')
      await page.waitForSelector('[data-person]:text-is("Ann")')
      await page.waitForSelector('[data-device="bin-1"]')
      people = []
      await page.waitForSelector('button:text-is("Log in")')
      const { status } = await page.request
        .get(`${served.url}api/state`)
        .then((answer) => ({ status: answer.status() }))
      expect(status).toBe(401)
    },
  )

  browserTest('every touch target on a phone is 44 pixels high', async () => {
    const { page } = await served.visit()
    const low = (): Promise<string[]> =>
      page.$$eval(
        'button, a[href], input, select, summary, [role=button], label:has(input[type=checkbox])',
        (all) =>
          (
            all as unknown as {
              checkVisibility(): boolean
              getBoundingClientRect(): { height: number }
              outerHTML: string
              matches(s: string): boolean
            }[]
          )
            .filter((one) => one.checkVisibility() && !one.matches('.sr-only, input[type=checkbox]'))
            .filter((one) => one.getBoundingClientRect().height < 44)
            .map((one) => `${one.getBoundingClientRect().height} ${one.outerHTML.slice(0, 120)}`),
      )
    for (const device of ['', 'bin-2', 'fridge-1', 'main', 'cabinets-left', 'cabinet-1']) {
      if (device) await select(page, device)
      if (device === 'cabinet-1') await page.click('[data-shelf="1"] summary')
      await page.$$eval('#device > div > details', (all) => {
        for (const one of all as unknown as { open: boolean }[]) one.open = true
      })
      await page.waitForTimeout(400)
      await expect.poll(low, { message: device }).toEqual([])
    }
  })

  browserTest(
    'the picture is one stop of the Tab key; arrow keys, Enter and Esc move through it',
    async () => {
      const { page } = await served.visit({ width: 1400 })
      const stops: string[] = []
      for (let presses = 0; presses < 24; presses += 1) {
        await page.keyboard.press('Tab')
        stops.push(await focused(page))
        if (stops.at(-1)!.startsWith('Cabinet 1')) break
      }
      expect(stops.at(-1)).toMatch(/^Cabinet 1: /)
      await page.keyboard.press('ArrowRight')
      await expect.poll(() => focused(page)).toMatch(/^Cabinet 2: /)
      await page.keyboard.press('End')
      await page.keyboard.press('Home')
      await page.keyboard.press('ArrowDown')
      await expect.poll(() => focused(page)).toMatch(/^Fridge 1/)
      await page.keyboard.press('ArrowDown')
      await expect.poll(() => focused(page)).toMatch(/^Bin 1: /)
      await page.keyboard.press('ArrowRight')
      await page.keyboard.press('Enter')
      await expect.poll(() => focused(page)).toBe('Bin 2')
      await page.keyboard.press('Tab')
      await expect.poll(() => focused(page)).toBe('Open, Bin 2')
      await page.keyboard.press('Escape')
      await expect.poll(() => focused(page)).toMatch(/^Bin 2: /)
      await page.keyboard.press('Tab')
      expect(await focused(page)).not.toMatch(/^Bin 3|^Main door/)
      const names = await page.$$eval('#device button', (all) =>
        all.map((one) => one.getAttribute('aria-label') ?? one.textContent),
      )
      expect(new Set(names).size).toBe(names.length)
    },
  )

  browserTest(
    'the page announces a new alarm: title, live region, badge and a notice with a link',
    async () => {
      hub.state.alarms = []
      const { page } = await served.visit()
      const others = Number(await page.locator('[data-badge]').getAttribute('data-badge'))
      expect(await page.locator('[data-announced]').textContent()).toBe('')
      expect(await page.title()).toBe(`(${others}) Hub 1`)
      hub.state.alarms = [alarm('door_forced', 'door main')]
      await page.waitForSelector('[role=alert]:has-text("Door main")', { state: 'attached' })
      await expect.poll(() => page.title()).toBe(`(${others + 1}) Hub 1`)
      await page.click('[data-notice=bad] button:has-text("Show it")')
      await page.waitForSelector('[data-sentence-of="main"]')
    },
  )

  for (const width of [390, 1400])
    browserTest(
      `at ${width} pixels no touch target moves when the last unit is sold, or when alarms come and go`,
      async () => {
        hub.state.alarms = []
        const { page } = await served.visit({ width })
        await page.locator('[data-device="cabinet-2"] [data-picture-row="1/2"]').click()
        const more = page.getByLabel('Row 2/1/2: one more')
        await expect.poll(() => focused(page)).toBe('Row 2/1/2: units')
        await page.waitForTimeout(300)
        const { x, y } = (await more.boundingBox())!
        await page.mouse.move(x + 10, y + 10)
        const moved = async (): Promise<number> => Math.round((await more.boundingBox())!.y - y)
        const stock = hub.state.stock
        for (let time = 0; time < 3; time += 1) {
          hub.state.stock = stock.map((facing) => ({ ...facing, quantity: 0 }))
          await page.waitForSelector('[data-obstacle]')
          expect([time, 'all sold', await moved()]).toEqual([time, 'all sold', 0])
          hub.state.alarms = [alarm('door_forced', 'door main'), alarm('fridge_warm', 'fridge 1')]
          await page.waitForSelector('[data-alarms="2"]')
          expect([time, 'alarms', await moved()]).toEqual([time, 'alarms', 0])
          hub.state.stock = stock
          await page.waitForSelector('[data-obstacle]', { state: 'detached' })
          hub.state.alarms = []
          await page.waitForSelector('[data-alarms="0"]')
          expect([time, 'over', await moved()]).toEqual([time, 'over', 0])
        }
      },
    )

  browserTest(
    'the login leaves no error in the browser’s log, and the selected tab is visible in forced colours',
    async () => {
      const { page, problems } = await served.browser.open(served.url, { width: 390 })
      await page.waitForSelector('input[name=token]')
      expect(problems).toEqual([])
      const opened = await served.visit()
      await opened.page.emulateMedia({ forcedColors: 'active' })
      await opened.page.click('summary:has-text("Log and wire")')
      const colour = (name: string): Promise<string> =>
        opened.page
          .locator(`#device button:text-is("${name}")`)
          .evaluate(
            (one) =>
              (
                globalThis as unknown as { getComputedStyle(of: unknown): { backgroundColor: string } }
              ).getComputedStyle(one).backgroundColor,
          )
      await expect.poll(async () => (await colour('Log')) !== (await colour('Wire'))).toBe(true)
      expect(await seriousProblems(opened.page)).toEqual([])
    },
  )

  for (const width of [390, 768, 2560])
    browserTest(`at ${width} pixels long order numbers and names stay within their frames`, async () => {
      const orders = hub.core.orders
      hub.core.orders = () => orders().map((order) => ({ ...order, order_number: 999_979 }))
      const { page } = await served.visit({ width })
      await page.waitForSelector('text=/order 999979/')
      const crossing = await page.$$eval('svg[data-columns] text', (all) => {
        type Shape = { getBoundingClientRect(): { left: number; right: number; top: number; bottom: number } }
        type Text = Shape & {
          textContent: string
          ownerDocument: { querySelectorAll(s: string): Iterable<Shape> }
        }
        return (all as unknown as Text[]).flatMap((text) => {
          const one = text.getBoundingClientRect()
          if (text.textContent === '') return []
          const frames = [...text.ownerDocument.querySelectorAll('[data-device] > rect:first-child')]
          const holds = frames.some((frame) => {
            const box = frame.getBoundingClientRect()
            return (
              one.left >= box.left &&
              one.right <= box.right &&
              one.top >= box.top - 2 &&
              one.bottom <= box.bottom + 2
            )
          })
          return holds ? [] : [text.textContent]
        })
      })
      expect(crossing).toEqual([])
    })
})
