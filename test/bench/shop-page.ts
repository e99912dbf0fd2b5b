import { chromium, type Browser } from 'playwright-core'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { waitUntilReady } from '../../simulator/demo/programs.ts'
import { chromiumFlags } from '../support/chromium.ts'
import { demoHub } from '../support/demo-hub.ts'
import { onPath } from '../support/on-path.ts'
import type { Figure, Section } from './figures.ts'
import { install } from './installation.ts'
import { progress } from './progress.ts'

export interface ShopPageBench {
  runtime: Runtime
  folder: string
  rounds: number
}

const READY_MS = 120_000
const TELEPHONE = { width: 390, height: 844 }
/** The slow network of the budget: 400 kbit/s, 400 ms, and a processor 4 times slower. */
const SLOW = { latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000, offline: false }
const SLOWER = 4

interface Load {
  usableMs: number
  codeKb: number
  picturesKb: number
}

/**
 * Measures the first load of the shop in headless Chromium, with the demo's real programs and pictures: the time until
 * a product can be added to the cart, and the bytes of code, styles and pictures of the first view.
 */
export async function benchShopPage({ runtime, folder, rounds }: ShopPageBench): Promise<Section> {
  const executablePath = onPath('chromium')
  if (executablePath === undefined) throw new Error('the part “shop-page” needs chromium on the path')
  const { clock } = runtime
  const installation = await install({
    folder,
    runtime,
    hardware: demoHub,
    run: { cloud: {}, simulator: {}, edge: {} },
  })
  const browser = await chromium.launch({ executablePath, args: chromiumFlags })
  try {
    installation.start()
    const { baseUrl } = installation.addresses
    const { hubId } = installation
    const isReady = await waitUntilReady({
      clock,
      baseUrl,
      hubId,
      timeoutMs: READY_MS,
      isGivenUp: () => false,
    })
    if (!isReady) throw new Error(`the demo does not serve; see ${folder}`)
    const loads = { slow: [] as Load[], fast: [] as Load[] }
    for (let round = 0; round < rounds; round += 1) {
      progress.show(`round ${round + 1} of ${rounds}`)
      for (const network of ['slow', 'fast'] as const)
        loads[network].push(await load(browser, `${baseUrl}/shop/${hubId}`, network === 'slow'))
    }
    installation.check()
    const figure = (name: string, of: Load[], what: keyof Load, unit: string, aim: string): Figure => ({
      name,
      values: of.map((one) => one[what]),
      unit,
      aim,
    })
    return {
      title: `the first load of the shop on a telephone (${rounds} rounds, an empty cache each)`,
      figures: [
        figure('usable, 400 kbit/s, 400 ms, processor 4×', loads.slow, 'usableMs', 'ms', 'at most 4000'),
        figure('usable, this machine', loads.fast, 'usableMs', 'ms', 'at most 1500'),
        figure('code and styles', loads.slow, 'codeKb', 'kB', 'at most 80'),
        figure('pictures of the first view', loads.slow, 'picturesKb', 'kB', 'at most 250'),
      ],
      notes: [
        'usable: from the start of the navigation to the frame in which a product can be added to the cart',
        'bytes: as transferred, with headers; pictures until the network is idle',
      ],
    }
  } finally {
    await browser.close()
    await installation.stop()
  }
}

async function load(browser: Browser, url: string, isSlow: boolean): Promise<Load> {
  const context = await browser.newContext({ viewport: TELEPHONE, deviceScaleFactor: 2 })
  try {
    const page = await context.newPage()
    const session = await context.newCDPSession(page)
    await session.send('Network.enable')
    if (isSlow) {
      await session.send('Network.emulateNetworkConditions', SLOW)
      await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWER })
    }
    const kinds = new Map<string, string>()
    const bytes: Record<string, number> = {}
    session.on('Network.responseReceived', ({ requestId, type }) => kinds.set(requestId, type))
    session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      const kind = kinds.get(requestId) ?? 'Other'
      bytes[kind] = (bytes[kind] ?? 0) + encodedDataLength
    })
    await page.goto(url, { waitUntil: 'commit' })
    const usableMs = await page.evaluate<number>(`new Promise((done) => {
      const look = () =>
        document.querySelector('[data-product] button:not([disabled])')
          ? done(performance.now())
          : requestAnimationFrame(look)
      look()
    })`)
    await page.waitForLoadState('networkidle')
    const of = (...names: string[]): number => names.reduce((sum, name) => sum + (bytes[name] ?? 0), 0) / 1000
    return {
      usableMs,
      codeKb: of('Script', 'Stylesheet'),
      picturesKb: of('Image'),
    }
  } finally {
    await context.close()
  }
}
