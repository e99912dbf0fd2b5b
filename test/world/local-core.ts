import type { LocalCore } from '../../edge/local-api/local-api.ts'
import type { CommandResult } from '../../protocol/mqtt/command.ts'

export const TOKEN = 'a-token-of-this-test'
export const OPERATION = '018f3c2a-7b4e-7c1d-9a3b-5c6d7e8f9012'

export function result(
  outcome: CommandResult['outcome'],
  reason: CommandResult['reason'],
  data: CommandResult['data'],
): CommandResult {
  return { command_id: OPERATION, session: '0'.repeat(32), outcome, reason, data }
}

/** The person in an argument: the actor itself, or its `by`. */
function actorIn(one: unknown): unknown {
  if (typeof one !== 'object' || one === null) return undefined
  return 'shared_token' in one ? one : 'by' in one ? one.by : undefined
}

/** The hub's functions for its local API without a hub: each accepts every call and records it. */
export function recordingCore() {
  /** The calls: name and arguments without the person. */
  const asked: unknown[] = []
  /** The person that each call reported. */
  const actors: [string, unknown][] = []
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
    people: () => [],
    alarms: () => [{ code: 'bin_fault', subject: 'bin 2', detail: 'open_door jam', raised_at: 1 }],
    acceptance: {
      begin: ask('begin'),
      beginSteps: ask('beginSteps'),
      stop: ask('stop'),
      decide: ask('decide'),
      end: ask('end'),
      state: () => ({ id: null, revision: 0, hindrance: null, running: null }),
      protocol: () => null,
      parts: () => ['bin 1'],
      kept: () => [],
    },
    stock: () => [],
  }
  return { core, asked, actors, ask }
}
