import { uuidv7 } from '../../protocol/model/ids.ts'
import { CommandResult, type Command } from '../../protocol/mqtt/command.ts'
import { everyInBackground } from '../background.ts'
import type { CloudContext } from '../context.ts'
import type { Queries } from '../store/database.ts'
import type { CommandOutcome, CommandRequest, Commands } from './command-outcome.ts'
import {
  closeLost,
  insertSent,
  readFinished,
  recordFinished,
  recordSilence,
  type Finished,
} from './command-store.ts'
import type { GatewaySettings } from './gateway-settings.ts'
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
  stop(): void
  /** A result came on its topic. */
  onResult(hubId: number, result: CommandResult, isHeld: boolean): Promise<void>
  /** A result came in the ledger, and is committed. */
  onFinished(commandId: string): void
}

interface Waiter {
  hubId: number
  /** On the list, until its time is up. */
  wait(): void
  /** Off the list, and its clock stopped: whoever does this settles it. */
  take(): void
  /** Without an outcome: what became of it is to be read. */
  settle(noted?: CommandOutcome): void
  /** The outcome that a result says, written down. */
  note(q: Queries, result: Finished): Promise<CommandOutcome>
}

/** How often rows are looked for that a dead process left open. */
const CLOSE_LOST_MS = 60_000

/**
 * Commands to hubs (SPEC §6): the row is committed before the message goes out; the answer comes by the result topic or
 * by the ledger, whichever is first, and is committed before it is told. The row is the truth.
 */
export function createCommands(ports: CommandPorts): CommandDesk {
  const { context, settings, clocks } = ports
  const { db, runtime, checkpoint } = context
  const { clock } = runtime
  const waiters = new Map<string, Waiter>()
  let cancelSweep = (): void => {}

  /** The session to address and the hub's clock in it, for a hub that is there; asks the hub where it has to. */
  async function reach(hubId: number): Promise<{ session: string; hubNow: number } | undefined> {
    const session = await connectedSession(hubId)
    if (session === undefined) return undefined
    const hubNow = clocks.now(hubId, session)
    if (hubNow !== undefined) return { session, hubNow }
    ports.hail(hubId)
    await clocks.next(hubId, settings.hailTimeoutMs)
    const renewed = await connectedSession(hubId)
    const heard = renewed === undefined ? undefined : clocks.now(hubId, renewed)
    return renewed === undefined || heard === undefined ? undefined : { session: renewed, hubNow: heard }
  }

  async function connectedSession(hubId: number): Promise<string | undefined> {
    const heardSince = clock.now() - context.settings.onlineWithinMs
    const row = await db.kysely
      .selectFrom('hub_sessions')
      .select('session')
      .where('hub_id', '=', hubId)
      .where('is_connected', '=', 1)
      .where('last_heard_at', '>=', heardSince)
      .executeTakeFirst()
    return row?.session
  }

  /** Resolves when the command is finished, with its outcome where that is noted already; or after `timeoutMs`. */
  function answered(
    commandId: string,
    { hubId, note }: CommandRequest,
    timeoutMs: number,
  ): Promise<CommandOutcome | undefined> {
    const begunAt = clock.monotonic()
    let cancel = (): void => {}
    return new Promise((resolve) => {
      const waiter: Waiter = {
        hubId,
        wait() {
          waiters.set(commandId, waiter)
          cancel = clock.after(timeoutMs, () => waiter.settle())
        },
        take() {
          waiters.delete(commandId)
          cancel()
        },
        settle(noted) {
          waiter.take()
          resolve(noted)
        },
        async note(q, result) {
          const outcome = outcomeOf(commandId, result, clock.monotonic() - begunAt)
          await note?.(q, outcome)
          return outcome
        },
      }
      waiter.wait()
    })
  }

  async function send(request: CommandRequest): Promise<CommandOutcome> {
    const { hubId, body, actor, note, timeoutMs = context.settings.commandTimeoutMs } = request
    const noted = async (outcome: CommandOutcome): Promise<CommandOutcome> => {
      await note?.(db.kysely, outcome)
      return outcome
    }
    const begunAt = clock.monotonic()
    const reached = await reach(hubId)
    if (!reached) return noted({ kind: 'offline' })
    const id = uuidv7(runtime)
    const { session, hubNow } = reached
    await db.transact((tx) => insertSent(tx.q, { id, hubId, session, body, actor }, clock.now()))
    checkpoint('commands.recorded')
    const ttlMs = Math.min(settings.commandTtlMs, timeoutMs)
    const command = { command_id: id, session, expires_monotonic: hubNow + ttlMs, body }
    const answer = answered(id, request, timeoutMs)
    if (!ports.publish(hubId, command)) {
      waiters.get(id)?.settle()
      const nothing = { command_id: id, outcome: 'refused', reason: 'offline', data: null } as const
      await db.transact((tx) => recordFinished(tx.q, hubId, nothing, clock.now()))
      return noted({ kind: 'offline' })
    }
    checkpoint('commands.published')
    const outcome = await answer
    if (outcome) return outcome
    const finished = (await readFinished(db.kysely, id)) ?? (await giveUp(id))
    return noted(outcomeOf(id, finished, clock.monotonic() - begunAt))
  }

  async function giveUp(id: string): Promise<Finished | undefined> {
    await db.transact((tx) => recordSilence(tx.q, id, clock.now()))
    return readFinished(db.kysely, id)
  }

  return {
    send,
    async onResult(hubId, result, isHeld) {
      const waiter = waiters.get(result.command_id)
      if (!isHeld && waiter?.hubId !== hubId) return
      if (waiter?.hubId !== hubId) {
        await db.transact((tx) => recordFinished(tx.q, hubId, result, clock.now()))
        checkpoint('commands.finished')
        return
      }
      // Results may come twice: the first writes it down, and nobody else settles the command meanwhile.
      waiter.take()
      try {
        const noted = await db.transact(async (tx) => {
          await recordFinished(tx.q, hubId, result, clock.now())
          return waiter.note(tx.q, result)
        })
        checkpoint('commands.finished')
        waiter.settle(noted)
      } catch (error) {
        waiter.wait()
        throw error
      }
    },
    onFinished: (commandId) => waiters.get(commandId)?.settle(),
    start() {
      cancelSweep = everyInBackground(context, CLOSE_LOST_MS, 'close lost commands', async () => {
        const now = clock.now()
        const count = await closeLost(db.kysely, now - settings.lostCommandMs, now)
        if (count > 0) context.log.warn({ count }, 'commands of a process that died: outcome unknown')
      })
    },
    stop: () => cancelSweep(),
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
