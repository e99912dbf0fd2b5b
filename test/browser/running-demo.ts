import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import type { Page } from 'playwright-core'
import type { DemoFile } from '../../simulator/demo/demo.ts'
import { type Simulator, simulatorAt } from '../../simulator/interface/client.ts'
import type { HubState } from '../../simulator/hub-state.ts'
import type { Act } from '../../simulator/physics/world-state.ts'
import { type Browser, builtPage, openBrowser } from '../support/browser.ts'
import { commandOf, packageRoot } from '../support/programs.ts'
import { startDemoPrograms } from '../world/demo.ts'
import { eachTime } from './set-up.ts'

/** The demo's real programs, as `npm start` runs them, and a browser that shows their pages. */
export interface RunningDemo {
  browser: Browser
  simulator: Simulator
  /** `data/demo.json`. */
  file: () => DemoFile
  /** The token of the hub's own page. */
  token: () => string
  /** Opens a program's page, and waits until the hub is drawn. */
  visit: (program: 'simulator' | 'edge', url: string, width: number) => Promise<Page>
  /** Runs one step of a scenario at the simulator. */
  step: (what: object) => Promise<unknown>
  acts: () => Promise<Act[]>
  /** The state without the sensors. */
  state: () => Promise<HubState>
  /** Runs an operators' command at the demo's database. Returns its output. */
  larder: (...args: string[]) => string
  /** Actions of people at the hub itself, from the cloud's audit log. */
  audited: () => AuditedAct[]
  /** Calls the launcher, as scenarios do: `/programs/cloud/stop`. */
  tell: (path: string) => Promise<number | undefined>
  stop: () => Promise<void>
}

export interface AuditedAct {
  actor: string
  action: string
  object: string
  detail: { before?: number; after?: number }
}

/** Each try of a test begins with its own demo. */
export const useDemo = (speed: number): RunningDemo =>
  eachTime(
    () => startDemo({ SIMULATOR_SPEED: String(speed) }),
    (demo) => demo.stop(),
  )

async function startDemo(settings: Record<string, string>): Promise<RunningDemo> {
  const programs = await startDemoPrograms({ settings })
  const { places, file } = programs
  const assets = { simulator: (await builtPage('simulator')).assets, edge: (await builtPage('edge')).assets }
  await programs.ready()
  const simulator = simulatorAt(file().simulator_url)
  const browser = await openBrowser()
  function larder(...args: string[]): string {
    const [cli, ...cliMain] = commandOf('cloud/cli/main')
    const { stdout } = spawnSync(cli, [...cliMain, ...args], {
      cwd: packageRoot(),
      encoding: 'utf8',
      env: { ...process.env, DATABASE_URL: file().database_url, PUBLIC_URL: file().base_url },
    })
    return stdout
  }

  return {
    browser,
    simulator,
    file,
    token: () => readFileSync(`${places.journal}.token`, 'utf8').trim(),
    /** Separately compiled programs have no pages; they use the pages of the build. */
    async visit(program, url, width) {
      const { page } = await browser.open('about:blank', { width })
      const { origin } = new URL(url)
      const serve = (path: string) => {
        const made =
          path === '/' ? assets[program].page(undefined) : assets[program].file(path.slice(1), undefined)
        return {
          status: made.status,
          headers: { ...made.headers } as Record<string, string>,
          body: Buffer.from(made.body as Uint8Array),
        }
      }
      await page.route(
        ({ origin: from, pathname }) =>
          from === origin && /^\/([A-Za-z0-9_-]+\.(js|css|svg))?$/.test(pathname),
        (route) => route.fulfill(serve(new URL(route.request().url()).pathname)),
      )
      await page.goto(url)
      await page.waitForSelector('[data-device="bin-1"]')
      return page
    },
    step: (what) => simulator.ask('POST', '/api/steps', { hub_id: 1, step: what }),
    acts: () => simulator.ask('GET', '/api/hubs/1/actuations'),
    state: () => simulator.ask('GET', '/api/hubs/1/state'),
    larder,
    audited: () =>
      larder('audit', 'list', '--hub', '1', '--action', 'hub.', '--limit', '10000')
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as AuditedAct),
    tell: (path) =>
      new Promise((done, failed) => {
        const call = request({ socketPath: places.benchSocket, method: 'POST', path }, (answer) => {
          answer.resume()
          answer.once('end', () => done(answer.statusCode))
        })
        call.once('error', failed)
        call.end()
      }),
    async stop() {
      await browser.close()
      await programs.stop()
    },
  }
}
