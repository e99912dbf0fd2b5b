import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import type { DemoFile } from '../../simulator/demo/demo.ts'
import { prepareData } from '../../simulator/demo/first-start.ts'
import { demoPlaces, type DemoPlaces } from '../../simulator/demo/places.ts'
import { demoPorts } from '../../simulator/demo/settings.ts'
import { seedCopies } from '../support/demo-data.ts'
import { portSettings } from '../support/ports.ts'
import { commandOf, compiledCommandOf, packageRoot } from '../support/programs.ts'

/** The demo's real programs. */
export interface DemoPrograms {
  child: ChildProcess
  places: DemoPlaces
  /** The output so far. */
  text: () => string
  /** Waits until the demo serves; rejects if it ends. */
  ready: () => Promise<void>
  /** `data/demo.json` */
  file: () => DemoFile
  /** Ends the programs with SIGTERM, and deletes the folder unless the caller gave it. */
  stop: () => Promise<void>
}

/** Time to start on a busy machine; an idle one needs some seconds. */
const START_MS = 200_000

export async function startDemoPrograms({
  settings = {},
  args = ['--gpio', 'socket'],
  folder,
  ports,
  isBundled = true,
}: {
  settings?: Readonly<Record<string, string>>
  args?: readonly string[]
  /** Default: a new folder, deleted by `stop`. */
  folder?: string
  /** Default: free ports. */
  ports?: Readonly<Record<string, string>>
  /** Otherwise each module of a program is a file, and the demo makes its data, as with `npm start`. */
  isBundled?: boolean
} = {}): Promise<DemoPrograms> {
  const home = folder ?? mkdtempSync(join(tmpdir(), 'larder-demo-'))
  const places = demoPlaces(join(home, 'data'))
  if (isBundled && !existsSync(places.seedFile)) await copyData(places)
  const [node, ...main] = (isBundled ? commandOf : compiledCommandOf)('simulator/demo/main')
  const child = spawn(node, [...main, ...args], {
    cwd: packageRoot(),
    env: {
      ...process.env,
      ...(ports ?? (await portSettings(demoPorts))),
      DATA_DIR: join(home, 'data'),
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  return {
    child,
    places,
    text: () => text,
    async ready() {
      await vi.waitUntil(() => text.includes('Ctrl-C ends') || hasEnded(), { timeout: START_MS })
      if (hasEnded()) throw new Error(`the demo ended: ${text}`)
    },
    file: () => JSON.parse(readFileSync(places.demoFile, 'utf8')) as DemoFile,
    async stop() {
      if (!hasEnded()) {
        const exited = new Promise((done) => child.once('exit', done))
        child.kill('SIGTERM')
        await exited
      }
      if (folder === undefined) rmSync(home, { recursive: true, force: true })
    },
  }
}

function copyData(places: DemoPlaces): Promise<unknown> {
  const hardwareTemplate = join(packageRoot(), 'simulator/hardware/demo-hub.json')
  const environment = { DATA_DIR: places.cloud }
  return prepareData({
    places,
    seed: { command: seedCopies(hardwareTemplate), environment },
    hardwareTemplate,
  })
}
