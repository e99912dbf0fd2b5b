import { createLocalApi, type LocalApiOptions, type LocalCore } from '../../../edge/local-api/local-api.ts'
import type { Person } from '../../../edge/local-api/people.ts'
import { hostCheck } from '../../../protocol/model/allowed-hosts.ts'
import { openAccess } from './open-access.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import type { CommandResult } from '../../../protocol/mqtt/command.ts'
import { pageAssets } from '../../../protocol/page-assets.ts'
import { idleAcceptance } from '../../support/idle-acceptance.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { demoHub } from '../../support/demo-hub.ts'

export const TOKEN = 'a-token-of-this-test'
export const OPERATION = '018f3c2a-7b4e-7c1d-9a3b-5c6d7e8f9012'
export const location = { cabinet: 1, shelf: 2, row: 3 }

const isActor = (one: unknown): boolean => typeof one === 'object' && one !== null && 'shared_token' in one
const actorIn = (one: unknown): unknown =>
  isActor(one) ? one : typeof one === 'object' && one !== null && 'by' in one ? one.by : undefined

export function bench(changes: Partial<LocalCore> = {}, people: readonly Person[] = []) {
  const runtime = virtualRuntime()
  const asked: unknown[] = []
  /** The hub's functions with the person that each call reported. */
  const actors: [string, unknown][] = []
  const logged: object[] = []
  const ask =
    (name: string) =>
    (...args: unknown[]) => {
      const by = args.map(actorIn).find((one) => one !== undefined)
      if (by !== undefined) actors.push([name, by])
      asked.push([name, ...args.filter((one) => actorIn(one) === undefined)])
      return { ok: true } as const
    }
  const core: LocalCore = {
    operate: (body, reply, by) => {
      actors.push([body.name, by])
      asked.push(['operate', body])
      reply(result('executed', null, { door: 'open', duration_ms: 900 }))
    },
    health: () => ({ accepting_orders: true, bins: [], fridges: [], doors: [], unknown_operations: 0 }),
    settle: ask('settle'),
    restock: ask('restock'),
    count: ask('count'),
    unlockDoor: ask('unlockDoor'),
    confirmFridge: ask('confirmFridge'),
    takeOverController: ask('takeOverController'),
    noteRestart: (by) => void actors.push(['noteRestart', by]),
    foreignControllers: () => ['bins'],
    unknownOperations: () => [],
    deadLetters: () => [],
    replayDeadLetters: ask('replayDeadLetters'),
    dropDeadLetter: ask('dropDeadLetter'),
    orders: () => [],
    readings: () => [],
    hold: ask('hold'),
    held: () => ({ orders: false, bins: [] }),
    alarms: () => [{ code: 'bin_fault', subject: 'bin 2', detail: 'open_door jam', raised_at: 1 }],
    acceptance: {
      ...idleAcceptance(ask),
      begin: (name, parts, how) => {
        actors.push(['begin', how?.by])
        return ask('begin')(name, parts, ...(how?.withUnassignedRows ? ['with unassigned rows'] : []))
      },
      decide: () => ({ ok: false, reason: 'not_now', why: 'Say why.' }),
    },
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
    people: () => people,
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

export function result(
  outcome: CommandResult['outcome'],
  reason: CommandResult['reason'],
  data: CommandResult['data'],
): CommandResult {
  return { command_id: OPERATION, session: '0'.repeat(32), outcome, reason, data }
}
