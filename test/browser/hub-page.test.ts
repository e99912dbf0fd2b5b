import { readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { overflowOf, picture, seriousProblems, weightOf } from '../support/browser.ts'
import { TOKEN, hold, press, select, type ServedHub, useHub } from './served-hub.ts'
import { browserTest, screens } from './set-up.ts'
import { OPERATION } from '../world/local-core.ts'

const { served, hub } = useHub()

const visit: ServedHub['visit'] = (about) => served.visit(about)

/** Pictures of one pixel, and of two pixels side by side. */
const ONE_PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC'
const TWO_PIXELS =
  'iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAC0lEQVR4nGP4DwYAFPIF+6QNfF4AAAAASUVORK5CYII='

describe('the hub’s own page', () => {
  browserTest(
    'the hub’s page asks for the token, and stores the login in a cookie that no script can read',
    async () => {
      const { page } = await served.browser.open(served.url, { width: 390 })
      await page.fill('input[name=token]', 'wrong')
      await page.click('button:text-is("Log in")')
      await page.waitForSelector('[data-notice=bad]')
      await page.fill('input[name=token]', TOKEN)
      await page.click('button:text-is("Log in")')
      await page.waitForSelector('[data-device="bin-1"]')
      // The refusal of the former try is no longer true.
      expect(await page.locator('[data-notice=bad]').count()).toBe(0)
      const stored: string = await page.evaluate(
        'document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)',
      )
      expect(stored).not.toContain(TOKEN)
      expect(await page.evaluate('document.cookie')).toBe('')
      await page.reload()
      await page.waitForSelector('[data-device="bin-1"]')
      await page.click('[aria-label="Log out"]')
      await page.reload()
      await page.waitForSelector('input[name=token]')
    },
  )

  browserTest('a link with the token logs in, and the token is removed from the address', async () => {
    const { page, problems } = await visit()
    await expect.poll(() => page.url()).toBe(served.url)
    expect(problems).toEqual([])
  })

  browserTest(
    'alarms are at the top of the page with cause and remedy, and link to their device',
    async () => {
      const { page } = await visit()
      const alarm = page.locator('[data-alarms] > ul > li').first()
      await expect
        .poll(() => alarm.textContent())
        .toMatch(/Bin 2 has failed to move.*Then close or raise it here/)
      await alarm.getByRole('button', { name: 'Show it' }).click()
      await page.waitForSelector('[data-sentence-of="bin-2"]')
      hub.state.alarms = []
      await page.waitForSelector('[data-alarms="0"]')
    },
  )

  browserTest('a failed action is described in words, with a remedy', async () => {
    const { page } = await visit()
    hub.state.result = { outcome: 'failed', reason: 'fault', data: { fault: 'jam' } }
    await select(page, 'bin-2')
    await press(page, 'Open')
    await page.waitForSelector(
      '[data-notice=bad]:has-text("It is jammed: its motor stalled. Clear what blocks it")',
    )
    hub.state.result = { outcome: 'refused', reason: 'interlock', data: null }
    await press(page, 'Lower')
    await page.waitForSelector('[data-notice=bad]:has-text("It must not move now")')
  })

  browserTest('the page offers only safe actions for every device', async () => {
    const { page } = await visit()
    await select(page, 'bin-3')
    for (const what of [
      'Open',
      'Close',
      'Raise',
      'Lower',
      'Open and close 3 times',
      'Reconnect',
      'Do not use it',
    ])
      await press(page, what)
    await select(page, 'fridge-1')
    await hold(page, 'I have checked the goods: sell again')
    await press(page, 'Lock all its doors')
    await select(page, 'main')
    await hold(page, 'Unlock for 30 s')
    await select(page, 'cabinets-left')
    await hold(page, 'It is a spare part for this hub: use it here')
    await expect.poll(() => hub.asked.length).toBe(11)
    expect(hub.asked).toEqual([
      ...['open_bin', 'close_bin', 'raise_bin', 'lower_bin'].map((name) => ['operate', { name, bin: 3 }]),
      ['operate', { name: 'cycle_bin', bin: 3, cycles: 3 }],
      ['operate', { name: 'reconnect_bin', bin: 3 }],
      ['hold', 3, true],
      ['confirmFridge', 1],
      ['operate', { name: 'close_fridge', fridge: 1 }],
      ['unlockDoor', 'main', 30_000],
      ['takeOverController', 'cabinets-left'],
    ])
  })

  browserTest(
    'a technician can stop and resume orders, resolve unknown operations and restart the service',
    async () => {
      const { page } = await visit()
      await hold(page, 'Stop orders')
      await page.waitForSelector('[data-intake]:has-text("a person has stopped them here")')
      await press(page, 'Resume orders')
      await page.waitForSelector('[data-intake]:has-text("Orders are taken")')
      await hold(page, 'Yes, it happened', '[data-unknown]')
      await hold(page, 'Drop')
      await press(page, 'Request all data from the cloud')
      await page.click('summary:text-is("The service")')
      await hold(page, 'Restart the service')
      await expect.poll(() => served.restarted).toBe(1)
      expect(hub.asked).toEqual([
        ['hold', 'orders', true],
        ['hold', 'orders', false],
        ['settle', OPERATION, true],
        ['dropDeadLetter', 7],
        ['replayDeadLetters'],
      ])
    },
  )

  browserTest('a technician counts and restocks a cabinet row by row, while the stock changes', async () => {
    const { page } = await visit()
    await select(page, 'cabinet-2')
    await page.click('[data-shelf="1"] summary')
    const row = page.locator('[data-row="2/1/1"]')
    await row.getByLabel('one more').click()
    await row.getByLabel('one more').click()
    hub.state.stock = hub.state.stock.map((facing) => ({ ...facing, quantity: 5 }))
    await row.getByText('5 of 12 there').waitFor()
    await row.getByRole('button', { name: 'Added 3' }).click()
    const other = page.locator('[data-row="2/1/2"]')
    await other.getByLabel('units').fill('0')
    await other.getByRole('button', { name: 'Save count 0' }).click()
    await expect
      .poll(() => hub.asked)
      .toEqual([
        ['restock', { cabinet: 2, shelf: 1, row: 1 }, 3],
        ['count', { cabinet: 2, shelf: 1, row: 2 }, 0],
      ])
  })

  browserTest(
    'a row can be found by name or barcode, typed or scanned, and its count gets the focus',
    async () => {
      const { page } = await served.browser.open('about:blank', { width: 390 })
      // The browser of this test has no barcode detector of its own.
      await page.addInitScript(`globalThis.BarcodeDetector = class {
      constructor({ formats }) { if (!formats.includes('upc_a')) throw new Error('not for UPC') }
      async detect(image) { return image.width === 2 ? [{ rawValue: '0049000002120' }] : [] }
    }`)
      await page.goto(`${served.url}#token=${TOKEN}`)
      const focused = (): Promise<string> =>
        page.evaluate('document.activeElement.getAttribute("aria-label")')
      const sought = page.getByLabel('Count or restock: name or barcode')
      await sought.fill('049000003110')
      await sought.press('Enter')
      await expect.poll(focused).toBe('Row 3/1/2: units')
      await expect.poll(() => page.locator('[data-row="3/1/2"]').textContent()).toContain('Snack 311')
      // The shelf of this row stays open.
      await page.waitForTimeout(500)
      expect(await focused()).toBe('Row 3/1/2: units')
      await page.click('button:has-text("The whole hub")')
      await sought.fill('snack 21')
      await sought.press('Enter')
      await page.click('[aria-label="Rows found"] button:has-text("Snack 215")')
      await expect.poll(focused).toBe('Row 2/1/6: units')
      await page.click('button:has-text("The whole hub")')
      const scan = (pixels: string): Promise<void> =>
        page
          .getByLabel('Scan a barcode with the camera')
          .setInputFiles({ name: 'photo.png', mimeType: 'image/png', buffer: Buffer.from(pixels, 'base64') })
      await scan(ONE_PIXEL)
      await page.waitForSelector('[data-notice=bad]:has-text("No barcode can be read")')
      await scan(TWO_PIXELS)
      await expect.poll(focused).toBe('Row 2/1/3: units')
    },
  )

  browserTest(
    'log and wire of the last minutes are shown, filtered by text and level, paused and downloaded',
    async () => {
      const { page } = await visit()
      await page.click('summary:has-text("Log and wire")')
      await page.waitForSelector('[data-recent=log]:has-text("alarm {\\"code\\":\\"bin_fault\\"}")')
      await page.click('button:text-is("Wire")')
      await page.waitForSelector('[data-recent=wire]:has-text("~0001 PING")')
      await page.getByLabel('Only lines with').fill('WELCOME')
      await page.waitForSelector('[data-recent=wire]:has-text("Nothing.")')
      await page.getByLabel('Only lines with').fill('')
      await page.click('button:text-is("Log")')
      await page.getByLabel('Level').selectOption('error')
      await page.waitForSelector('[data-recent=log]:has-text("Nothing.")')
      await page.getByLabel('Level').selectOption('warn')
      // The sentence comes first, then the time and the level.
      await expect
        .poll(() => page.locator('[data-recent=log] li').first().textContent())
        .toMatch(/^The hub has failed to move\. .*warn/)
      const [saved] = await Promise.all([
        page.waitForEvent('download'),
        page.click('button:text-is("Download")'),
      ])
      expect(saved.suggestedFilename()).toBe('hub-1-log.txt')
      expect(readFileSync(await saved.path(), 'utf8')).toBe(
        '1970-01-01T00:00:01.000Z warn alarm {"code":"bin_fault"}\n',
      )
      await page.click('button:text-is("Pause")')
      await page.waitForSelector('button[aria-pressed=true]:text-is("Continue")')
      expect(await seriousProblems(page)).toEqual([])
    },
  )

  browserTest(
    'the page loses no click while the state changes ten times a second, and no button moves under the finger',
    async () => {
      // Each click adds one unit, up to the capacity of the row.
      hub.state.stock = hub.state.stock.map((facing) => ({ ...facing, capacity: 250 }))
      const { page } = await visit({ width: 1400 })
      await select(page, 'cabinet-2')
      await page.click('[data-shelf="1"] summary')
      let changes = 0
      const mover = setInterval(() => {
        hub.state.doors[0]!.status = ++changes % 2 === 1 ? 'unlocked' : 'locked'
        // Some rows always have stock: otherwise the page would show above that the hub sells nothing.
        hub.state.stock = hub.state.stock.map((facing) => ({ ...facing, quantity: 1 + (changes % 9) }))
      }, 100)
      try {
        const more = page.getByLabel('Row 2/1/2: one more')
        await page.getByLabel('Row 2/1/2: units').fill('0')
        const { x, y, width, height } = (await more.boundingBox())!
        await page.mouse.move(x + width / 2, y + height / 2)
        for (let turn = 1; turn <= 200; turn++) {
          await page.mouse.down()
          await page.waitForTimeout(30)
          await page.mouse.up()
        }
        await expect
          .poll(() => page.getByLabel('Row 2/1/2: units').inputValue(), { timeout: 20_000 })
          .toBe('200')
        expect(changes).toBeGreaterThan(50)
      } finally {
        clearInterval(mover)
      }
    },
    180_000,
  )

  browserTest('a selected number stays selected for overtyping while units are sold', async () => {
    const { page } = await visit({ width: 1400 })
    await select(page, 'cabinet-2')
    await page.click('[data-shelf="1"] summary')
    const units = page.getByLabel('Row 2/1/2: units')
    let left = Number(await units.inputValue())
    const sell = async (): Promise<void> => {
      left -= 1
      hub.state.stock = hub.state.stock.map((facing) => ({ ...facing, quantity: left }))
      await page.waitForSelector(`[data-row="2/1/2"]:has-text("${left} of 12 there")`)
    }
    const seen = await units.inputValue()
    // A click waits until the shelf is unfolded. A field that is not visible yet cannot get the focus.
    await units.click()
    await sell()
    expect(await units.inputValue()).toBe(seen)
    // A row that was focused and left unchanged shows the present stock.
    await page.getByLabel('Row 2/1/3: units').focus()
    await expect.poll(() => units.inputValue()).toBe(String(left))
    await units.focus()
    await units.selectText()
    await sell()
    await page.keyboard.insertText('0')
    await expect.poll(() => units.inputValue()).toBe('0')
  })

  for (const { width, colorScheme } of screens)
    browserTest(
      `at ${width} pixels, ${colorScheme} the page needs no horizontal scrolling, and axe finds no serious problem`,
      async () => {
        const { page, problems } = await visit({ width, colorScheme })
        expect(await seriousProblems(page)).toEqual([])
        await picture(page, `hub-${width}-${colorScheme}`)
        if (width === 390 && colorScheme === 'light') await picture(page, 'hub', 'edge')
        for (const device of ['bin-2', 'fridge-1', 'main', 'bins', 'cabinet-1']) {
          await select(page, device)
          expect([device, await overflowOf(page)]).toEqual([device, 0])
        }
        await page.click('[data-shelf="1"] summary')
        expect([await overflowOf(page), await seriousProblems(page)]).toEqual([0, []])
        await picture(page, `hub-cabinet-${width}-${colorScheme}`)
        expect(problems).toEqual([])
      },
      60_000,
    )

  browserTest('the files of the hub’s page are at most 120 kB as sent', async () => {
    expect(weightOf(served.folder)).toBeGreaterThan(10_000)
    expect(weightOf(served.folder)).toBeLessThanOrEqual(120_000)
    await Promise.resolve()
  })
})
