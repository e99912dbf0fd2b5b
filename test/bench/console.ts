import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { programCommand } from '../../simulator/demo/programs.ts'
import { type Simulator, simulatorAt } from '../../simulator/interface/client.ts'
import { chromiumFlags } from '../support/chromium.ts'
import { onPath } from '../support/on-path.ts'
import { packageRoot } from '../support/programs.ts'
import { type Section, quantile } from './figures.ts'
import { processorMs, residentMb } from './process-figures.ts'

export interface ConsoleOptions {
  runtime: Runtime
  folder: string
  /** Number of hubs on the page at the end; the page starts with one. */
  hubs: number
  /** Duration of each observation, idle and busy. */
  seconds: number
}

/** Pause between two moves of each hub's main door while it is busy. */
const MOVE_MS = 500
const SETTLE_MS = 3000

/** Result of one observation. */
interface Watch {
  /** Percent of one processor. */
  simulator: number
  page: number
  residentMb: number
  pageMb: number
  /** Milliseconds from the request of a change to the page that shows it. */
  delays: number[]
  lost: number
}

/**
 * Measures the console's page with all hubs of one simulator in headless Chromium: the processor time of
 * simulator and page, idle and with two changes per second of each hub, and the delay of a change. The
 * baseline is one hub.
 */
export async function benchConsole({ runtime, folder, hubs, seconds }: ConsoleOptions): Promise<Section> {
  const { clock } = runtime
  const executablePath = onPath('chromium')
  if (executablePath === undefined) throw new Error('the part “console” needs chromium on the path')
  const program = await startSimulator(folder)
  const simulator = simulatorAt(program.url)
  const browser = await chromium.launch({ executablePath, args: chromiumFlags })
  try {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } })
    await page.goto(program.url)
    await page.click('button:has-text("Hubs and worlds")')
    await page.waitForSelector('[data-fleet] > li')
    await page.evaluate(WATCH_CARDS)
    const looks = async (count: number): Promise<{ rest: Watch; busy: Watch }> => {
      await page.waitForSelector(`[data-fleet] > li:nth-child(${count}):last-child`)
      await sleep(clock, SETTLE_MS)
      const rest = await watch(page, () => sleep(clock, seconds * 1000))
      const busy = await watch(page, () => moveDoors(simulator, count))
      return { rest, busy }
    }
    const one = await looks(1)
    for (let hub = 2; hub <= hubs; hub++) await simulator.ask('POST', '/api/hubs', { hub_id: hub, like: 1 })
    const all = await looks(hubs)
    return {
      title: `the console's page with ${hubs} hubs (${seconds} s each; a door of every hub moves each ${MOVE_MS} ms)`,
      figures: [
        ...figuresOf(`${hubs} hubs`, all),
        ...figuresOf('1 hub', one),
        {
          name: `simulator's memory for a hub more`,
          values: [(all.busy.residentMb - one.busy.residentMb) / (hubs - 1)],
          unit: 'MB',
        },
      ],
      notes: [
        'delay: from before the call that moves a door to the frame in which its card says so, the call among it',
        `never shown: ${one.busy.lost + all.busy.lost} changes`,
        'page: the process of Chromium that draws it, its share of what processes have in common among its memory',
      ],
    }
  } finally {
    await browser.close()
    await program.stop()
  }

  async function watch(page: Page, meanwhile: () => Promise<void | number[][]>): Promise<Watch> {
    await page.evaluate('globalThis.seen = []')
    const drawing = renderersOf(program.process.pid!)
    const ahead = await pageAhead(page)
    const taken = (): [number, number] => [
      processorMs(program.process.pid!),
      drawing.reduce((sum, pid) => sum + processorMs(pid), 0),
    ]
    const before = taken()
    const from = clock.monotonic()
    const moved = (await meanwhile()) ?? []
    const wallMs = clock.monotonic() - from
    const after = taken()
    const delays: number[] = []
    let lost = 0
    const seen = await page.evaluate<[hub: number, isOpen: boolean, at: number][]>('globalThis.seen')
    for (const [hub, isOpen, movedAt] of moved) {
      const at = movedAt! + ahead
      const shown = seen.find(([id, open, when]) => id === hub && Number(open) === isOpen && when >= at)
      if (shown) delays.push(shown[2] - at)
      else lost++
    }
    return {
      simulator: ((after[0] - before[0]) / wallMs) * 100,
      page: ((after[1] - before[1]) / wallMs) * 100,
      residentMb: residentMb(program.process.pid!),
      pageMb: drawing.reduce((sum, pid) => sum + residentMb(pid), 0),
      delays,
      lost,
    }
  }

  /** How far the page's clock is ahead of this program's: from the fastest of several measurements. */
  async function pageAhead(page: Page): Promise<number> {
    let best = { tookMs: Infinity, ahead: 0 }
    for (let look = 0; look < 20; look++) {
      const from = clock.monotonic()
      const there = await page.evaluate<number>('performance.now()')
      const tookMs = clock.monotonic() - from
      if (tookMs < best.tookMs) best = { tookMs, ahead: there - (from + tookMs / 2) }
    }
    return best.ahead
  }

  /** Moves the main door of every hub repeatedly: `[hub, open, when]` of each move. */
  async function moveDoors(simulator: Simulator, count: number): Promise<number[][]> {
    const moved: number[][] = []
    const turns = Math.floor((seconds * 1000) / MOVE_MS)
    const mover = async (hub: number): Promise<void> => {
      // The moves are spread over time.
      await sleep(clock, (hub / count) * MOVE_MS)
      for (let turn = 0; turn < turns; turn++) {
        const isOpen = turn % 2 === 0
        moved.push([hub, Number(isOpen), clock.monotonic()])
        await (isOpen
          ? simulator.ask('POST', `/api/hubs/${hub}/faults`, { type: 'door_forced', target: 'main' })
          : simulator.ask('POST', `/api/hubs/${hub}/act`, { action: 'close_door', target: 'main' }))
        await sleep(clock, MOVE_MS)
      }
    }
    await Promise.all(Array.from({ length: count }, (_, index) => mover(index + 1)))
    return moved
  }
}

const figuresOf = (what: string, { rest, busy }: { rest: Watch; busy: Watch }): Section['figures'] => [
  { name: `${what}: change to pixels`, values: busy.delays, unit: 'ms' },
  {
    name: `${what}: change to pixels, p95`,
    values: [quantile(busy.delays, 0.95)],
    unit: 'ms',
    aim: 'at most 200',
  },
  { name: `${what}: simulator, at rest`, values: [rest.simulator], unit: '% of a processor' },
  { name: `${what}: simulator, busy`, values: [busy.simulator], unit: '% of a processor' },
  { name: `${what}: page, at rest`, values: [rest.page], unit: '% of a processor' },
  { name: `${what}: page, busy`, values: [busy.page], unit: '% of a processor' },
  { name: `${what}: simulator resident`, values: [busy.residentMb], unit: 'MB' },
  { name: `${what}: page resident`, values: [busy.pageMb], unit: 'MB' },
]

/** Records when a hub's card shows a door as open or closed: at the frame in which it is drawn. */
const WATCH_CARDS = `{
  globalThis.seen = []
  const known = new Map()
  new MutationObserver(() => requestAnimationFrame(() => {
    for (const card of document.querySelectorAll('[data-fleet] > li')) {
      const hub = Number(card.querySelector('button').textContent.replace('Hub ', ''))
      const isOpen = card.textContent.includes('doors open')
      if (known.get(hub) === isOpen) continue
      known.set(hub, isOpen)
      seen.push([hub, isOpen, performance.now()])
    }
  })).observe(document.querySelector('[data-fleet]'), { subtree: true, childList: true, characterData: true })
}`

/** The simulator as a separate process. */
async function startSimulator(
  folder: string,
): Promise<{ process: ChildProcess; url: string; stop: () => Promise<void> }> {
  const [node, ...main] = programCommand('simulator/main') as [string, ...string[]]
  const child = spawn(node, main, {
    cwd: packageRoot(),
    env: {
      ...process.env,
      SIMULATOR_PORT: '0',
      DATA_DIR: join(folder, 'data'),
      HARDWARE_FILES: join(packageRoot(), 'simulator/hardware/demo-hub.json'),
      LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((done) => void child.once('exit', () => done()))
  let text = ''
  const url = await new Promise<string>((ready, failed) => {
    child.once('exit', (code) => failed(new Error(`the simulator ended (${code}): ${text}`)))
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const found = /simulator ready: (\S+)/.exec(text)?.[1]
      if (found !== undefined) ready(found)
    })
  })
  return {
    process: child,
    url,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** The renderer processes of this program's Chromium, except `other`. */
function renderersOf(other: number): number[] {
  const parents = new Map<number, number>()
  const drawing: number[] = []
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry)))
    try {
      const pid = Number(name)
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      parents.set(pid, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
      if (pid !== other && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('--type=renderer'))
        drawing.push(pid)
    } catch {
      // The process has ended.
    }
  const isOurs = (pid: number | undefined): boolean =>
    pid !== undefined && pid > 1 && (pid === process.pid || isOurs(parents.get(pid)))
  return drawing.filter(isOurs)
}
