import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { listen } from '../../cloud/platform/http/listen.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { lineTo } from '../browser/line.ts'
import { seriousProblems } from '../support/browser.ts'
import { inChromium } from '../support/chromium.ts'
import { service } from '../support/services.ts'
import { emptySqlite } from '../world/database.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { openService } from '../world/service.ts'

service('chromium')(
  'the monitor page opens in any browser; with a key it shows the log, follows it and filters it',
  async () => {
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
    const { cloud, shop, logFolder } = await openService(() => Promise.resolve(db))
    const { runtime } = shop.context
    const { key } = await issueApiKey(db.kysely, runtime, {
      name: 'test',
      ownerId: 1,
      scopes: ['diag:read'],
      hubs: '*',
      expiresAt: null,
    })
    const server = await listen(cloud.app, {
      host: '127.0.0.1',
      port: 0,
      runtime: systemRuntime(),
      bounds: defaultLimits.http,
    })
    // The service uses a virtual clock, which must be advanced.
    const mover = setInterval(() => shop.clock.advance(250), 20)
    try {
      await inChromium(async (browser) => {
        const page = await browser.newPage()
        const problems: string[] = []
        page.on('pageerror', (error) => problems.push(error.message))
        page.on('console', (line) => line.type() === 'error' && problems.push(line.text()))
        await page.goto(`http://127.0.0.1:${server.port}/diag/logs/monitor`)
        expect(await page.textContent('#state')).toBe('a key with the scope diag:read is needed')
        expect(await page.locator('#lines > div').count()).toBe(0)
        // By keyboard: the field of the key has the focus.
        await page.keyboard.type('lk_of_nobody')
        await page.keyboard.press('Enter')
        await page.waitForSelector('#state[data-state="lost"] >> text=this key is refused')
        // The browser itself logs the two 401 answers.
        expect(problems.splice(0)).toHaveLength(2)
        await page.keyboard.press('Control+A')
        await page.keyboard.type(key)
        await page.keyboard.press('Enter')
        await page.waitForSelector('#state[data-state="live"]')
        await page.waitForSelector('#lines > div:nth-child(2)')
        const entry = { time: 0, level: 40, msg: 'a <b>bin</b> is stuck', bin: 2 }
        await appendFile(join(logFolder, 'cloud.log'), `${JSON.stringify(entry)}\nplain text\n`)
        await page.waitForSelector('#lines > div:nth-child(4)')
        expect(await page.textContent('#lines > .warn')).toContain('a <b>bin</b> is stuck')
        expect(await page.locator('#lines b').count()).toBe(0)
        await page.fill('#filter', 'STUCK')
        expect(await page.locator('#lines > div:visible').count()).toBe(1)
        // A sentence comes first; details are shown on request.
        expect(await page.locator('#lines pre').count()).toBe(0)
        await page.click('#lines > div:visible summary')
        expect(JSON.parse((await page.textContent('#lines pre'))!)).toEqual({ bin: 2 })
        await page.fill('#filter', '')
        const alarm = {
          time: 0,
          level: 50,
          msg: 'alarm',
          kind: 'bin_fault',
          message: 'Bin 2 has failed (jam).',
        }
        await page.click('#pause')
        await appendFile(join(logFolder, 'cloud.log'), `${JSON.stringify(alarm)}\n`)
        await page.waitForSelector('#pause:text-is("Go on (1 new)")')
        expect(await page.locator('#lines > .error').count()).toBe(0)
        await page.click('#pause')
        await page.waitForSelector('#lines > .error:has-text("Error: alarm: Bin 2 has failed (jam).")')
        await page.selectOption('#level', '40')
        expect(await page.locator('#lines > div:visible').count()).toBe(2)
        const [saved] = await Promise.all([page.waitForEvent('download'), page.click('#download')])
        const lines = (await readFile(await saved.path(), 'utf8')).trim().split('\n')
        expect(lines.map((line) => JSON.parse(line) as object)).toEqual([entry, alarm])
        // A reload needs no key, and all content is within a landmark.
        await page.reload()
        await page.waitForSelector('#state[data-state="live"]')
        expect(await seriousProblems(page)).toEqual([])
        expect(await page.locator('main #lines').count()).toBe(1)
        for (const width of [390, 1400]) {
          await page.setViewportSize({ width, height: 800 })
          expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
        }
        expect(problems).toEqual([])

        // A service without power sends no error. The time limits are a fifteenth.
        const line = await lineTo(`http://127.0.0.1:${server.port}`)
        await page.addInitScript(`{
          const timeout = AbortSignal.timeout
          AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 15)
        }`)
        await page.goto(`${line.url}diag/logs/monitor`)
        await page.fill('#key', key)
        await page.press('#key', 'Enter')
        await page.waitForSelector('#state[data-state="live"]')
        // The comments of the service keep a line alive on which nothing is written.
        await page.waitForTimeout(4000)
        expect(await page.textContent('#state')).toBe('live')
        line.freeze()
        await page.waitForSelector('#state[data-state="lost"]')
      })
    } finally {
      clearInterval(mover)
      await server.close(0)
    }
  },
  60_000,
)
