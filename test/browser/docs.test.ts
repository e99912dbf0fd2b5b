import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { overflowOf, picture, seriousProblems, type Visit } from '../support/browser.ts'

import { serveDemo } from './served.ts'
import { browserTest, eachTime, useBrowser } from './set-up.ts'

describe('the documentation', () => {
  const browser = useBrowser()
  const served = eachTime(() => serveDemo(['docs']))

  async function visit(how: Partial<Visit> = {}, where = '') {
    const opened = await browser.open(`${served.base}/docs${where}`, how)
    await opened.page.locator('.markdown').first().waitFor()
    return opened
  }

  for (const [width, colorScheme] of [
    [1400, 'light'],
    [390, 'dark'],
    [768, 'light'],
    [2560, 'dark'],
  ] as const)
    browserTest(
      `at ${width} pixels, ${colorScheme} no content is cut off, the page’s policy refuses no resource, and axe finds no serious problem`,
      async () => {
        const { page, problems } = await visit({ width, colorScheme }, '/guide-errors')
        await page.getByRole('heading', { name: 'Errors', exact: true }).first().waitFor()
        await picture(page, `docs-${width}-${colorScheme}`)
        expect([await overflowOf(page), await seriousProblems(page), problems]).toEqual([0, [], []])
        await page.emulateMedia({ forcedColors: 'active' })
        await page.goto(`${served.base}/docs`)
        expect([await overflowOf(page), await seriousProblems(page), problems]).toEqual([0, [], []])
        await page.emulateMedia({ forcedColors: 'none' })
        await page.goto(`${served.base}/docs/reference-alarms`)
        await page
          .getByRole('button', { name: /Test Request/ })
          .first()
          .waitFor()
        await picture(page, `docs-reference-${width}-${colorScheme}`)
        expect([await overflowOf(page), await seriousProblems(page), problems]).toEqual([0, [], []])
      },
      180_000,
    )

  browserTest(
    'a page needs little processor time, memory and network',
    async () => {
      for (const [where, ready, most] of [
        ['', 'h1', { bytes: 60_000, seconds: 1, megabytes: 8 }],
        ['/guide-errors', 'h1', { bytes: 60_000, seconds: 1, megabytes: 8 }],
        ['/reference-orders', 'h1', { bytes: 1_200_000, seconds: 8, megabytes: 30 }],
      ] as const) {
        const { page } = await browser.open('about:blank')
        const devtools = await page.context().newCDPSession(page)
        let bytes = 0
        await devtools.send('Performance.enable')
        await devtools.send('Network.enable')
        devtools.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength))
        await page.goto(`${served.base}/docs${where}`)
        await page.locator(ready).first().waitFor()
        if (where.startsWith('/reference'))
          await page
            .getByRole('button', { name: /Test Request/ })
            .first()
            .waitFor()
        await page.waitForLoadState('networkidle')
        // Counts only memory in use; the browser collects the rest at any time.
        await devtools.send('HeapProfiler.collectGarbage')
        const { metrics } = await devtools.send('Performance.getMetrics')
        const of = (name: string): number => metrics.find((metric) => metric.name === name)!.value
        const spent = { bytes, seconds: of('TaskDuration'), megabytes: of('JSHeapUsedSize') / 1e6 }
        for (const key of ['bytes', 'seconds', 'megabytes'] as const)
          expect([where, key, spent[key], spent[key] <= most[key]]).toEqual([where, key, spent[key], true])
      }
    },
    120_000,
  )

  browserTest(
    'search finds words of guides, fields and endpoints; addresses of the former page lead to the new one',
    async () => {
      const { page } = await visit()
      await page.keyboard.press('Control+k')
      const results = page.getByRole('listbox', { name: /Search Results/ })
      for (const [word, found] of [
        ['temperature', /owners\/hubs\/temperatures/],
        ['own payments', /Your own payments/],
      ] as const) {
        await page.getByRole('combobox', { name: /search/i }).fill(word)
        await results.getByRole('option', { name: found }).first().waitFor()
      }
      await results.getByRole('option', { name: 'Your own payments' }).first().click()
      await page.getByRole('heading', { name: 'Your own payments' }).waitFor()
      await page.goto(`${served.base}/docs#tag/guide-errors`)
      await page.waitForURL(/\/docs\/guide-errors/)
      await page.goto(`${served.base}/docs#tag/orders/POST/api/v1/users/{user_id}/orders`)
      await page.waitForURL(/\/docs\/reference-orders#tag\/orders\/POST/)
      await page.getByRole('button', { name: 'Test Request (post /api/v1/users/{user_id}/orders)' }).waitFor()
    },
    180_000,
  )

  /** Sends one call by its own button; `values` fills the empty fields. Returns the answer. */
  async function tryIt(
    page: Page,
    [method, path]: readonly [string, string],
    values: Record<string, number> = {},
    body?: object,
  ): Promise<Record<string, unknown>> {
    await page.getByRole('button', { name: `Test Request (${method} ${path})` }).click()
    const client = page.getByRole('dialog', { name: 'API Client' })
    for (const [name, value] of Object.entries(values)) {
      await client
        .getByRole('row', { name: `Include ${name} in request` })
        .getByRole('combobox', { name: 'Value' })
        .click()
      await page.keyboard.insertText(String(value))
    }
    if (body) {
      await client.locator('.cm-content').filter({ hasText: '{' }).first().click()
      await page.keyboard.press('Control+a')
      await page.keyboard.insertText(JSON.stringify(body))
    }
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.request().method() === method.toUpperCase()),
      client.getByRole('button', { name: `Send ${method} request` }).click(),
    ])
    const read = (await answer.json()) as Record<string, unknown>
    expect([path, answer.ok(), read]).toEqual([path, true, read])
    // The page shows the status too.
    await client.getByText(String(answer.status())).first().waitFor()
    await client.getByRole('button', { name: 'Close Client' }).click()
    await client.waitFor({ state: 'hidden' })
    return read
  }

  browserTest(
    'a newcomer gets from the first page to a paid order only by trying calls',
    async () => {
      const { page, problems } = await visit()
      const step = async (link: RegExp) => {
        await page.goto(`${served.base}/docs/guide-first-sale-in-five-minutes`)
        await page.getByRole('link', { name: link }).first().click()
      }
      await step(/^POST \/users\/user\/bootstrap\/guest/)
      const { user_id } = await tryIt(page, ['post', '/api/v1/users/user/bootstrap/guest'])
      await step(/^POST \/users\/\{user_id\}\/orders$/)
      const { order_id } = await tryIt(page, ['post', '/api/v1/users/{user_id}/orders'])
      await step(/^PUT /)
      const values = { order_id: order_id as number }
      const cart = await tryIt(page, ['put', '/api/v1/users/{user_id}/orders/{order_id}/order_item'], values)
      expect(cart).toMatchObject({ order_id, total: expect.any(Number) as number })
      await step(/^POST \/users\/payments\/pay/)
      const paid = await tryIt(
        page,
        ['post', '/api/v1/users/payments/pay'],
        {},
        {
          order_id,
          payment_method_id: 'pm_card_visa',
        },
      )
      expect(paid).toMatchObject({ order_id, payment_status: 'completed' })
      await picture(page, 'docs-paid')
      expect(problems).toEqual([])
      const row = await served.at.shop.context.db.kysely
        .selectFrom('orders')
        .selectAll()
        .executeTakeFirstOrThrow()
      expect(row).toMatchObject({ id: order_id, user_id, payment_status: 'completed' })
    },
    300_000,
  )

  /** Presses Tab until the focused element has this name. */
  async function tabTo(page: Page, name: RegExp): Promise<void> {
    const seen: string[] = []
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press('Tab')
      const focus = page.locator(':focus')
      const focused =
        `${(await focus.getAttribute('aria-label')) ?? ''} ${(await focus.textContent()) ?? ''}`.trim()
      if (name.test(focused)) return
      seen.push(focused.slice(0, 40))
    }
    throw new Error(`${String(name)} has not come: ${seen.join(' | ')}`)
  }

  /** Finds a call by search, sends it and reads its answer by keyboard. `fill` types its values. */
  async function tryByKeys(page: Page, path: string, fill?: () => Promise<void>) {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: /search/i }).waitFor()
    await page.keyboard.type(`POST ${path}:`.replace('POST', path.endsWith('order_item') ? 'PUT' : 'POST'))
    await page
      .getByRole('option')
      .first()
      .filter({ hasText: `${path}:` })
      .waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => decodeURIComponent(url.hash).endsWith(path))
    await page
      .getByRole('button', { name: new RegExp(`Test Request .*${path.replaceAll(/[{}]/g, '.')}\\)`) })
      .first()
      .waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await tabTo(page, /Test Request/)
    await page.keyboard.press('Enter')
    const client = page.getByRole('dialog', { name: 'API Client' })
    await client.waitFor()
    await client.locator(':focus').waitFor()
    await fill?.()
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().includes('/api/v1/')),
      page.keyboard.press('Control+Enter'),
    ])
    const read = (await answer.json()) as Record<string, unknown>
    expect([path, answer.ok(), read]).toEqual([path, true, read])
    await client.getByText(String(answer.status())).first().waitFor()
    return read
  }

  async function closeByKeys(page: Page): Promise<void> {
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'API Client' }).waitFor({ state: 'hidden' })
  }

  browserTest(
    'a keyboard user can skip the side list, and gets from the first page to a paid order',
    async () => {
      const { page, problems } = await visit()
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await tabTo(page, /^First sale in five minutes$/)
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/docs\/guide-first-sale/)

      const { order_id } = await tryByKeys(page, '/users/{user_id}/orders')
      await closeByKeys(page)
      await tryByKeys(page, '/users/{user_id}/orders/{order_id}/order_item', async () => {
        await tabTo(page, /^Include order_id in request/)
        await tabTo(page, /^Value/)
        await page.keyboard.type(String(order_id))
      })
      await closeByKeys(page)
      const paid = await tryByKeys(page, '/users/payments/pay', async () => {
        await tabTo(page, /"payment_method_id"/)
        await page.keyboard.press('Control+a')
        await page.keyboard.insertText(JSON.stringify({ order_id, payment_method_id: 'pm_card_visa' }))
      })
      expect(paid).toMatchObject({ order_id, payment_status: 'completed' })
      expect(problems).toEqual([])
    },
    300_000,
  )
})
