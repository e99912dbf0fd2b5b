import { createLocalApi, type LocalApiOptions, type LocalCore } from '../../../edge/local-api/local-api.ts'
import type { PersonAtHub } from '../../../protocol/mqtt/cloud-entries.ts'
import { hostCheck } from '../../../protocol/model/allowed-hosts.ts'
import { openAccess } from './open-access.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { pageAssets } from '../../../protocol/page-assets.ts'
import { recordingCore, TOKEN } from '../../world/local-core.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { demoHub } from '../../support/demo-hub.ts'

export const location = { cabinet: 1, shelf: 2, row: 3 }

export function bench(changes: Partial<LocalCore> = {}, people: readonly PersonAtHub[] = []) {
  const runtime = virtualRuntime()
  const { core: recording, asked, actors, ask } = recordingCore()
  const logged: object[] = []
  const core: LocalCore = {
    ...recording,
    acceptance: {
      ...recording.acceptance,
      begin: (name, parts, how) => {
        actors.push(['begin', how?.by])
        return ask('begin')(name, parts, ...(how?.withUnassignedRows ? ['with unassigned rows'] : []))
      },
      decide: () => ({ ok: false, reason: 'not_now', why: 'Say why.' }),
    },
    people: () => people,
    stock: () => [
      {
        product_id: 7,
        name: 'Cola',
        upc: '036000291452',
        location,
        primary: true,
        quantity: 4,
        capacity: 10,
        blocked: null,
      },
    ],
    ...changes,
  }
  const ledger = { epoch: '0'.repeat(32), base: 0, baseTag: 0, last: 0 }
  const options: LocalApiOptions = {
    ...openAccess,
    hubId: 1,
    core,
    sync: { state: () => ({ phase: 'waiting', session: null, receivedMsAgo: null, ledger }) },
    links: () => [
      { controller: 'bins', port: '/dev/bins', up: false, firmware: null, protocol: null, reason: 'gone' },
    ],
    recent: () => ({
      log: [{ at: 1000, level: 'warn', message: 'alarm', fields: { code: 'bin_fault' } }],
      wire: [{ at: 2000, controller: 'bins', direction: 'out', line: '~0001 PING t=5*465a' }],
    }),
    token: TOKEN,
    runtime,
    hardware: demoHub,
    software: 'larder-edge test',
    page: pageAssets(
      { readdirSync: () => ['index.html'], readFileSync: () => new TextEncoder().encode('<b>page</b>') },
      '/assets',
    ),
    liveMs: 100,
    restart: () => void asked.push(['restart']),
    isAllowedHost: hostCheck(['hub1.local']),
    clock: runtime.clock,
    log: {
      ...silentLog,
      info: (fields) => void logged.push(fields),
      warn: (fields) => void logged.push(fields),
    },
    motionTimeoutMs: 30_000,
    addressOf: () => '192.0.2.9',
  }
  const app = createLocalApi(options)
  const send = async (method: string, path: string, body?: unknown, token = options.token) => {
    const response = await app.request(path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { status: response.status, json: (await response.json()) as Record<string, unknown> }
  }
  return { app, runtime, asked, actors, logged, send }
}
