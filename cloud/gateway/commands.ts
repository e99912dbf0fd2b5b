import type { Cancel } from '../../protocol/model/runtime.ts'
import { uuidv7 } from '../../protocol/model/ids.ts'
import type { Command, CommandResult } from '../../protocol/mqtt/command.ts'
import { appendAudit } from '../platform/audit/audit.ts'
import { background, everyInBackground } from '../platform/work/background.ts'
import type { CloudContext } from '../platform/context.ts'
import { statement } from '../platform/store/statement.ts'
import { auditOf } from './command-audit.ts'
import type { CommandOutcome, Commands } from './command-outcome.ts'
import {
  closeLost,
  insertSent,
  readFinished,
  recordFinished,
  recordSilence,
  type Finished,
} from './command-store.ts'
import type { GatewaySettings } from '../platform/settings/gateway-settings.ts'
import type { HubClocks } from './hub-clocks.ts'

export interface CommandPorts {
  context: CloudContext
  settings: GatewaySettings
  clocks: HubClocks
  /** Publishes to a hub; false where the broker is not connected, and nothing went out. */
  publish: (hubId: number, command: Command) => boolean
  hail: (hubId: number) => void
}

export interface CommandDesk extends Commands {
  start(): void
  stop(): Promise<void>
  /** A result came on its topic. */
  onResult(hubId: number, result: CommandResult, isHeld: boolean): void
  /** A result came in the ledger, and is committed. */
  onFinished(commandId: string): void
}

interface Waiter {
  hubId: number
  /** Without a result: what became of it is to be read. */
  settle(result?: Finished): void
}

/** How often rows are looked for that a dead process left open. */
const CLOSE_LOST_MS = 60_000

const connectedSession = statement((q, at: { hubId: number; heardSince: number }) =>
  q
    .selectFrom('hub_sessions')
    .select('session')
    .where('hub_id', '=', at.hubId)
    .where('is_connected', '=', 1)
    .where('last_heard_at', '>=', at.heardSince),
)

/**
 * Commands to hubs (SPEC §6): the row is committed before the message goes out. The answer comes by the result topic or
 * by the ledger, whichever is first. A hub that answers has the outcome in its journal and its outbox: whoever waits is
 * told at once, and the row follows with the ledger, or soon without it.
 */
export function createCommands(ports: CommandPorts): CommandDesk {
  const { context, settings, clocks } = ports
  const { db, runtime, checkpoint } = context
  const { clock } = runtime
  const waiters = new Map<string, Waiter>()
  /** Told already, and not recorded yet. */
  const told = new Map<string, { hubId: number; result: Finished }>()
  let cancelRecord: Cancel | undefined
  let cancelSweep: Cancel | undefined

  /** The session to address and the hub's clock in it, for a hub that is there; asks the hub where it has to. */
  async function reach(hubId: number): Promise<{ session: string; hubNow: number } | undefined> {
    const session = await sessionOf(hubId)
    if (session === undefined) return undefined
    const hubNow = clocks.now(hubId, session)
    if (hubNow !== undefined) return { session, hubNow }
    ports.hail(hubId)
    await clocks.next(hubId, settings.hailTimeoutMs)
    const renewed = await sessionOf(hubId)
    const heard = renewed === undefined ? undefined : clocks.now(hubId, renewed)
    return renewed === undefined || heard === undefined ? undefined : { session: renewed, hubNow: heard }
  }

  async function sessionOf(hubId: number): Promise<string | undefined> {
    const heardSince = clock.now() - context.settings.onlineWithinMs
    const [row] = await connectedSession(db.kysely, { hubId, heardSince })
    return row?.session
  }

  /** Resolves when the command is finished, with its result where that is at hand; or after `timeoutMs`. */
  function answered(commandId: string, hubId: number, timeoutMs: number): Promise<Finished | undefined> {
    return new Promise((resolve) => {
      const settle = (result?: Finished): void => {
        waiters.delete(commandId)
        cancel()
        resolve(result)
      }
      const cancel = clock.after(timeoutMs, settle)
      waiters.set(commandId, { hubId, settle })
    })
  }

  const send: Commands['send'] = async (request) => {
    const { hubId, body, actor, timeoutMs = context.settings.commandTimeoutMs } = request
    const begunAt = clock.monotonic()
    const reached = await reach(hubId)
    if (!reached) {
      await appendAudit(db.kysely, runtime, auditOf({ hubId, body, actor, result: 'offline', reason: null }))
      return { kind: 'offline' }
    }
    const id = uuidv7(runtime)
    const { session, hubNow } = reached
    await db.transact((tx) => insertSent(tx.q, { id, hubId, session, body, actor }, clock.now()))
    checkpoint('commands.recorded')
    const ttlMs = Math.min(settings.commandTtlMs, timeoutMs)
    const command = { command_id: id, session, expires_monotonic: hubNow + ttlMs, body }
    const answer = answered(id, hubId, timeoutMs)
    if (!ports.publish(hubId, command)) {
      waiters.get(id)?.settle()
      const nothing = { command_id: id, outcome: 'refused', reason: 'offline', data: null } as const
      await db.transact((tx) => recordFinished(tx, clock, hubId, [nothing]))
      return { kind: 'offline' }
    }
    checkpoint('commands.published')
    const finished = (await answer) ?? (await readFinished(db.kysely, id)) ?? (await giveUp(id))
    return outcomeOf(id, finished, clock.monotonic() - begunAt)
  }

  async function giveUp(id: string): Promise<Finished | undefined> {
    await db.transact((tx) => recordSilence(tx, clock, id))
    return readFinished(db.kysely, id)
  }

  /** Records what no ledger has recorded by now: it is late, or the hub's fence refused, of which no ledger tells. */
  async function recordTold(): Promise<void> {
    cancelRecord?.()
    cancelRecord = undefined
    const results = [...told.values()]
    told.clear()
    for (const { hubId, result } of results) {
      await db.transact((tx) => recordFinished(tx, clock, hubId, [result]))
      checkpoint('commands.finished')
    }
  }

  return {
    send,
    onResult(hubId, result, isHeld) {
      const waiter = waiters.get(result.command_id)
      const isWaitedFor = waiter?.hubId === hubId
      if (!isHeld && !isWaitedFor) return
      if (isWaitedFor) waiter.settle(result)
      told.set(result.command_id, { hubId, result })
      cancelRecord ??= clock.after(settings.recordResultsMs, () =>
        background(context, 'results of commands', recordTold),
      )
    },
    onFinished(commandId) {
      told.delete(commandId)
      waiters.get(commandId)?.settle()
    },
    start() {
      cancelSweep = everyInBackground(context, CLOSE_LOST_MS, 'close lost commands', async () => {
        const sentBefore = clock.now() - settings.lostCommandMs
        const count = await db.transact((tx) => closeLost(tx, clock, sentBefore))
        if (count > 0) context.log.warn({ count }, 'commands of a process that died: outcome unknown')
      })
    },
    async stop() {
      cancelSweep?.()
      await recordTold()
    },
  }
}

function outcomeOf(commandId: string, finished: Finished | undefined, elapsedMs: number): CommandOutcome {
  switch (finished?.outcome) {
    case undefined:
    case 'unknown':
      return { kind: 'timeout', commandId }
    case 'executed': {
      const data = finished.data ?? {}
      const { duration_ms: reported } = data
      const durationMs = typeof reported === 'number' ? reported : Math.round(elapsedMs)
      return { kind: 'executed', commandId, data, durationMs }
    }
    case 'refused':
    case 'failed': {
      const { outcome: kind, reason, data } = finished
      return { kind, commandId, reason: reason ?? 'fault', data }
    }
  }
}
