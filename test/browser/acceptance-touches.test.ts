import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { useDemo } from './running-demo.ts'
import { browserTest } from './set-up.ts'

const demo = useDemo(20)

const SLOWLY = { timeout: 60_000, interval: 100 }
/** The rows of a cabinet, one after another. */
const CHAIN_MS = 240_000

const act = (what: object): Promise<unknown> => demo.simulator.ask('POST', '/api/hubs/1/act', what)
const until = (holds: () => Promise<boolean>): Promise<void> => expect.poll(holds, SLOWLY).toBe(true)

/** Opens and closes each door while the hub unlocks it. */
async function passDoors(page: Page): Promise<void> {
  const names = (await demo.state()).doors.map(({ door }) => door)
  for (const name of names) {
    await until(async () => (await demo.state()).doors.some(({ door, locked }) => door === name && !locked))
    await act({ action: 'open_door', target: name })
    await page.waitForSelector(`[data-running]:has-text("door ${name}: open")`)
    await act({ action: 'close_door', target: name })
  }
}

/** Lays something into each bin while the hub watches it, and takes it out. */
async function fillBins(page: Page): Promise<void> {
  for (const { bin } of (await demo.state()).bins) {
    const number = bin.slice('bin-'.length)
    await page.waitForSelector(`[data-in-hand="content/${number}"] [data-running]`)
    await act({ action: 'put_items', target: bin })
    await page.waitForSelector(`[data-running]:has-text("bin ${number} content: something")`)
    await act({ action: 'take_items', target: bin })
  }
}

async function takeAll(): Promise<void> {
  for (const { bin, units, door } of (await demo.state()).bins)
    if (units > 0 && door === 'open') await act({ action: 'take_items', target: bin })
}

browserTest(
  'the acceptance of the demo’s whole hub needs about 30 touches',
  async () => {
    for (const { cabinet, shelf, row, units } of (await demo.state()).rows)
      if (units === 0) await act({ action: 'restock', target: `cabinet-${cabinet}`, shelf, row, units: 1 })
    const page = await demo.visit('edge', `${demo.file().edge_url}/#token=${demo.token()}`, 390)
    let touches = 0
    const touch = async (target: Locator, how: { delay?: number } = {}): Promise<void> => {
      await target.click(how)
      touches += 1
    }
    const button = (name: string | RegExp): Locator => page.getByRole('button', { name })
    /** Runs the chain of the current step, and passes all of its steps with one verdict. */
    const chain = async (hands: () => Promise<void> = () => Promise.resolve()): Promise<void> => {
      const count = await page.locator('[data-chain]').getAttribute('data-chain')
      await touch(page.locator('[data-chain]'))
      await hands()
      await page.waitForSelector(`[data-agreed="${count}"]`, { timeout: CHAIN_MS })
      await touch(button(`All ${count} passed`))
      await page.waitForSelector('[data-agreed]', { state: 'detached' })
    }
    /** As a person does it: when the page shows that all bins are empty, and again if one has not moved. */
    const closeAll = async (): Promise<void> => {
      const isAll = async (door: string): Promise<boolean> =>
        (await demo.state()).bins.every((bin) => bin.door === door)
      await until(async () => (await button(/^Bin \d+: .*holds something/).count()) === 0)
      while (!(await isAll('closed'))) {
        await touch(button('My hands are out: close all open bins'))
        for (let waited = 0; waited < 15_000 && !(await isAll('closed')); waited += 100)
          await page.waitForTimeout(100)
      }
    }
    await touch(page.locator('a:has-text("Accept this hub")'))
    await touch(page.getByLabel('Your name, for the report'))
    await page.keyboard.type('Ann Larkin')
    await touch(button('Start'))
    await touch(page.locator('button.hold:has-text("Stop orders")'), { delay: 1300 })
    await page.waitForSelector('[data-hindrance]', { state: 'detached' })

    await chain()
    await page.waitForSelector('[data-in-hand="locks"]')
    await touch(page.locator('[data-carry-out]'))
    await touch(page.getByLabel('Remark'))
    await page.keyboard.type('each door holds')
    await touch(button('Passed'))
    await page.waitForSelector('[data-in-hand^="door/"]')
    await chain(() => passDoors(page))
    await page.waitForSelector('[data-in-hand^="open/"]')
    await chain(() => fillBins(page))
    await page.waitForSelector('[data-in-hand^="close/"]')
    await chain()
    const isDone = async (): Promise<boolean> => {
      const [done, all] = (await page.getAttribute('[data-progress]', 'data-progress'))!.split('/')
      return done === all
    }
    while (!(await isDone())) {
      await page.waitForSelector('[data-in-hand^="row/"]')
      await chain()
      await touch(button('Open all bins that hold something'))
      await until(async () =>
        (await demo.state()).bins.every(({ units, door }) => units === 0 || door === 'open'),
      )
      await takeAll()
      await closeAll()
    }
    await touch(button('End the acceptance'))
    await page.waitForSelector('[data-protocol]:has-text("passed")')
    await touch(button('Resume orders'))
    expect(touches).toBeLessThanOrEqual(35)
  },
  900_000,
)
