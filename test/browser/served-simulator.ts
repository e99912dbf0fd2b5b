import { serve } from '@hono/node-server'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { silentLog } from '../../protocol/model/log.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { Fleet } from '../../simulator/fleet.ts'
import { SimulatedHub } from '../../simulator/simulated-hub.ts'
import { testConsole } from '../simulator/support/console.ts'
import { builtPage } from '../support/browser.ts'
import { memoryStorage } from '../world/memory-storage.ts'

/** The console of a simulator without hubs. */
export interface ServedSimulator {
  url: string
  /** Folder of the built page. */
  folder: string
  fleet: Fleet
  /** Replaces the simulator behind the address. Open connections stay. */
  restart(): Promise<void>
  endConnections(): void
  close(): Promise<void>
}

export async function serveSimulator(): Promise<ServedSimulator> {
  const { assets: page, folder } = await builtPage('simulator')
  const runtime = systemRuntime()
  const { clock, random } = runtime
  const start = () => {
    const fleet = new Fleet({
      clock,
      wireKept: 1000,
      storageOf: () => memoryStorage(),
      worlds: { names: () => [], read: () => undefined, write() {} },
      make: (hardware, storage) => new SimulatedHub({ hardware, storage, runtime, log: silentLog }),
      mount: async () => async () => {},
    })
    return { fleet, app: testConsole({ fleet, page, clock, random, liveMs: 50 }).app }
  }
  let present = start()
  const fetch = (request: Request) => present.app.fetch(request)
  const server = serve({ fetch, hostname: '127.0.0.1', port: 0 }) as Server
  if (!server.listening) await new Promise((resolve) => void server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    folder,
    get fleet() {
      return present.fleet
    },
    async restart() {
      await present.fleet.close()
      present = start()
    },
    endConnections: () => server.closeAllConnections(),
    async close() {
      await present.fleet.close()
      server.close().closeAllConnections()
    },
  }
}
