import type { Hono } from 'hono'
import { silentLog } from '../../../protocol/model/log.ts'
import type { Random } from '../../../protocol/model/runtime.ts'
import { pageAssets } from '../../../protocol/page-assets.ts'
import { type ConsoleOptions, createConsole } from '../../../simulator/console/http.ts'
import { type Simulator, simulatorAt } from '../../../simulator/interface/client.ts'
import { createDesk } from '../../../simulator/scenarios/desk.ts'
import type { ScenarioShelf } from '../../../simulator/scenarios/shelf.ts'
import { readScenario, ScenarioError } from '../../../simulator/scenarios/text.ts'

export interface TestConsole {
  app: Hono
  /** The simulator's interface, without a connection. */
  simulator: Simulator
}

const noPage = pageAssets({ readdirSync: () => [], readFileSync: () => new Uint8Array() }, '/nowhere')

/** The simulator's console with its own scenarios, stored in `texts`. */
export function testConsole(
  options: Pick<ConsoleOptions, 'fleet' | 'clock'> & {
    random: Random
    page?: ConsoleOptions['page']
    liveMs?: number
    isAllowedHost?: ConsoleOptions['isAllowedHost']
    texts?: Map<string, string>
    demoFile?: string
  },
): TestConsole {
  const { random, texts = new Map<string, string>(), demoFile, ...rest } = options
  const simulator = simulatorAt('http://127.0.0.1', (url, init) =>
    app.request(url, { ...init, headers: { ...init.headers, host: '127.0.0.1' } }),
  )
  const desk = createDesk({ clock: options.clock, random, simulator, demoFile })
  const app = createConsole({
    page: noPage,
    liveMs: 100,
    isAllowedHost: () => true,
    log: silentLog,
    ...rest,
    desk,
    scenarios: shelfOf(texts),
    loginOf: (hubId) => (hubId === 1 ? { url: 'http://hub1.local:8081', token: 'a-token' } : undefined),
  })
  return { app, simulator }
}

function shelfOf(texts: Map<string, string>): ScenarioShelf {
  return {
    list: () =>
      [...texts].map(([name, text]) => {
        const { description, parameters } = readScenario(text)
        return { name, source: 'own', description, parameters }
      }),
    read: (name) => texts.get(name),
    write(name, text) {
      if (name === 'taken') throw new ScenarioError(['taken is a scenario of the library'])
      texts.set(name, text)
    },
    remove: (name) => texts.delete(name),
  }
}
