import { createHash } from 'node:crypto'
import { uuidv7 } from '../../protocol/model/ids.ts'
import { holdsWithin, type Cancel } from '../../protocol/model/runtime.ts'
import type { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { Command, CommandResult } from '../../protocol/mqtt/command.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import type { CloudContext } from '../platform/context.ts'
import { KEEP_MS } from '../platform/http/idempotency.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'
import type { Tx } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'
import { background, everyInBackground } from '../platform/work/background.ts'
import {
  auditUnsent,
  closeUnanswered,
  insertSent,
  readCommand,
  readFinished,
  recordFinished,
  type Finished,
} from './command-store.ts'
import { noteHealth, type HubClocks } from './hub-state.ts'

export interface CommandRequest {
  hubId: number
  body: CommandBody
  /** Who asked, as the audit log says it. */
  actor: string
  /** What it is about, as the audit log calls it; by default the device. */
  object?: string
  /**
   * Names the request that it comes of. A repetition has the command's id then, and the hub executes an id once: it is
   * answered with what came of it, and nothing moves again.
   */
  requestName?: string | undefined
  /** How long to wait for the answer; `CloudSettings.commandTimeoutMs` by default. */
  timeoutMs?: number
}

/**
 * What became of a command, as far as is known when its time is up.
 * - `executed`: done; `data` as `CommandResult.data` says.
 * - `refused`: nothing moved. `failed`: tried, see `reason` (`CommandReason`).
 * - `offline`: nothing was sent, and nothing will be (I2).
 * - `timeout`: no answer came; it may or may not have happened. A late result still updates the command's row.
 */
export type CommandOutcome =
  | { kind: 'executed'; commandId: string; data: Record<string, unknown>; durationMs: number }
  | {
      kind: 'refused' | 'failed'
      commandId: string
      reason: string
      data: Record<string, unknown> | null
    }
  | { kind: 'offline' }
  | { kind: 'timeout'; commandId: string }

/** Sends commands to hubs; never queues one. Each is in the audit log with what came of it. */
export interface Commands {
  send(request: CommandRequest): Promise<CommandOutcome>
}

export interface CommandPorts {
  context: CloudContext
  settings: GatewayLimits
  clocks: HubClocks
  /** Publishes to a hub; false where the broker is not connected, and nothing went out. */
  publish: (hubId: number, command: Command) => boolean
  /** Has the hub, or whoever hears it, say what its clock is. */
  findClock: (hubId: number) => void
  /** Listens for the hub's results, whoever serves it. False where the broker is not connected. */
  listen: (hubId: number) => Promise<boolean>
  /**
   * The hub's state may have changed: last in the transaction that recorded it. `health`: what it has just said, where that is
   * what holds by now; null: the database knows.
   */
  hubHeard: (tx: Tx, hubId: number, health: HubHealth | null) => Promise<void>
}

/** When results that the database did not take are recorded after all. */
const RECORD_AGAIN_MS = 1000

interface Waiter {
  hubId: number
  /** Without a result: what became of the command is to be read. */
  resolve(result?: Finished): void
}

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
 * answered at once, and the row follows with the ledger, or soon without it.
 *
 * The commands that a dead process left open are closed by a sweep, not by a row of due work each. Such a row would cost
 * every command an insert and a delete while its caller waits at a door, and would be of use only when a process dies. The
 * sweep is one update by an index that holds open commands alone; it takes all of them, without a limit.
 */
export class CommandSender implements Commands {
  readonly #ports: CommandPorts
  readonly #waiters = new Map<string, Waiter>()
  /** Results that whoever waited has, and that the store does not have yet. */
  readonly #unrecorded = new Map<string, { hubId: number; result: Finished }>()
  #cancelRecord: Cancel | undefined
  #cancelSweep: Cancel = () => {}

  constructor(ports: CommandPorts) {
    this.#ports = ports
  }

  start(): void {
    const { context, settings } = this.#ports
    this.#cancelSweep = everyInBackground(context, settings.sweepMs, 'close lost commands', () =>
      this.#closeLost(),
    )
  }

  async stop(): Promise<void> {
    this.#cancelSweep()
    await this.#recordResults()
  }

  async send(request: CommandRequest): Promise<CommandOutcome> {
    const { context, settings, publish } = this.#ports
    const { db, runtime, checkpoint } = context
    const { hubId, body, actor, object, timeoutMs = context.settings.commandTimeoutMs } = request
    const begunAt = runtime.clock.monotonic()
    const listening = this.#ports.listen(hubId)
    const reached = await this.#reach(hubId)
    if (!reached || !(await listening)) {
      await auditUnsent(db.kysely, runtime, request)
      return { kind: 'offline' }
    }
    const id = await this.#idOf(request)
    const { session, hubNow } = reached
    const recorded = await db.transact((tx) =>
      insertSent(tx.q, { id, hubId, session, body, actor, object }, runtime.clock.now()),
    )
    // A repetition of what has ended.
    if (recorded === 'ended') return outcomeOf(id, await readFinished(db.kysely, id), 0)
    checkpoint('commands.recorded')
    const ttlMs = Math.min(settings.commandTtlMs, timeoutMs)
    const answer = this.#answerTo(id, hubId, timeoutMs)
    if (!publish(hubId, { command_id: id, session, expires_monotonic: hubNow + ttlMs, body })) {
      this.#waiters.get(id)?.resolve()
      const nothing = { command_id: id, outcome: 'refused', reason: 'offline', data: null } as const
      await db.transact<unknown>((tx) =>
        // What was sent before may have been executed: it keeps its id.
        recorded === 'repeated'
          ? closeUnanswered(tx, runtime.clock, { id })
          : recordFinished(tx, runtime.clock, hubId, [nothing]),
      )
      return { kind: 'offline' }
    }
    checkpoint('commands.published')
    const finished = (await answer) ?? (await readFinished(db.kysely, id)) ?? (await this.#giveUp(id))
    return outcomeOf(id, finished, runtime.clock.monotonic() - begunAt)
  }

  /** A command that comes of a named request has an id that follows from the name, for as long as the name holds. */
  async #idOf({ requestName }: CommandRequest): Promise<string> {
    const { db, runtime } = this.#ports.context
    if (requestName === undefined) return uuidv7(runtime)
    const now = runtime.clock.now()
    const today = Math.floor(now / KEEP_MS)
    const first = await readCommand(db.kysely, commandId(requestName, today - 1, 0))
    const day = first && first.created_at > now - KEEP_MS ? today - 1 : today
    // One that was refused moved nothing: the repetition is a new try.
    for (let attempt = 0; ; attempt += 1) {
      const id = commandId(requestName, day, attempt)
      if ((await readCommand(db.kysely, id))?.state !== 'refused') return id
    }
  }

  /** A result came on its topic. `isHeld`: this process holds the hub. */
  onResult(hubId: number, result: CommandResult, isHeld: boolean): void {
    const { settings } = this.#ports
    const waiter = this.#waiters.get(result.command_id)
    const isWaitedFor = waiter?.hubId === hubId
    if (!isHeld && !isWaitedFor) return
    if (isWaitedFor) this.#answerWith(waiter, result)
    this.#unrecorded.set(result.command_id, { hubId, result })
    this.#recordSoon(settings.recordResultsMs)
  }

  /** First how the hub stands now: whoever reads next must find what the answer says. */
  #answerWith(waiter: Waiter, result: CommandResult): void {
    const { context, hubHeard } = this.#ports
    const { after, session } = result
    if (after === undefined) return waiter.resolve(result)
    const noted = context.db.transact(async (tx) => {
      const now = context.runtime.clock.now()
      const isLatest = await noteHealth(tx.q, waiter.hubId, { session, ...after }, now)
      await hubHeard(tx, waiter.hubId, isLatest ? after.health : null)
    })
    background(context, 'the state after a command', () => noted.finally(() => waiter.resolve(result)))
  }

  #recordSoon(delayMs: number): void {
    const { context } = this.#ports
    this.#cancelRecord ??= context.runtime.clock.after(delayMs, () =>
      background(context, 'results of commands', () =>
        this.#recordResults().finally(() => {
          // What the database did not take is tried again.
          if (this.#unrecorded.size > 0) this.#recordSoon(RECORD_AGAIN_MS)
        }),
      ),
    )
  }

  /** Whether a command to the hub is under way. */
  isAwaited(hubId: number): boolean {
    return [...this.#waiters.values()].some((waiter) => waiter.hubId === hubId)
  }

  /** A result came in the ledger, and is committed. */
  onFinished(commandId: string): void {
    this.#unrecorded.delete(commandId)
    this.#waiters.get(commandId)?.resolve()
  }

  /** The session to address and the hub's clock in it, for a hub that is there; asks for it where it is unknown. */
  async #reach(hubId: number): Promise<{ session: string; hubNow: number } | undefined> {
    const { clocks, context, settings, findClock } = this.#ports
    let session = await this.#sessionOf(hubId)
    if (session !== undefined && clocks.now(hubId, session) === undefined) {
      findClock(hubId)
      await holdsWithin(context.runtime.clock, settings.hailTimeoutMs, async () => {
        session = await this.#sessionOf(hubId)
        return session === undefined || clocks.now(hubId, session) !== undefined
      })
    }
    const hubNow = session === undefined ? undefined : clocks.now(hubId, session)
    return session === undefined || hubNow === undefined ? undefined : { session, hubNow }
  }

  async #sessionOf(hubId: number): Promise<string | undefined> {
    const { db, runtime, settings } = this.#ports.context
    const heardSince = runtime.clock.now() - settings.onlineWithinMs
    const [row] = await connectedSession(db.kysely, { hubId, heardSince })
    return row?.session
  }

  /** Resolves when the command is finished, with its result where that is at hand; or after `timeoutMs`. */
  #answerTo(commandId: string, hubId: number, timeoutMs: number): Promise<Finished | undefined> {
    return new Promise((done) => {
      const resolve = (result?: Finished): void => {
        this.#waiters.delete(commandId)
        cancel()
        done(result)
      }
      const cancel = this.#ports.context.runtime.clock.after(timeoutMs, resolve)
      this.#waiters.set(commandId, { hubId, resolve })
    })
  }

  async #giveUp(id: string): Promise<Finished | undefined> {
    const { db, runtime } = this.#ports.context
    await db.transact((tx) => closeUnanswered(tx, runtime.clock, { id }))
    return readFinished(db.kysely, id)
  }

  /** Records what no ledger has recorded by now: it is late, or the hub's fence refused, of which no ledger speaks. */
  async #recordResults(): Promise<void> {
    const { db, runtime, checkpoint } = this.#ports.context
    this.#cancelRecord?.()
    this.#cancelRecord = undefined
    // Each is forgotten when it is committed: no ledger may ever speak of what the hub's fence refused.
    const unrecordedNow = [...this.#unrecorded.values()]
    for (const unrecorded of unrecordedNow) {
      const { hubId, result } = unrecorded
      await db.transact((tx) => recordFinished(tx, runtime.clock, hubId, [result]))
      if (this.#unrecorded.get(result.command_id) === unrecorded) this.#unrecorded.delete(result.command_id)
      checkpoint('commands.finished')
    }
  }

  async #closeLost(): Promise<void> {
    const { context, settings } = this.#ports
    const { db, runtime, log } = context
    const sentBefore = runtime.clock.now() - settings.lostCommandMs
    const count = await db.transact((tx) => closeUnanswered(tx, runtime.clock, { sentBefore }))
    if (count > 0) log.warn({ count }, 'commands of a process that died: outcome unknown')
  }
}

/** A UUIDv8 (RFC 9562 §5.8) of a request's name, the day in which the name was first used, and the try. */
function commandId(requestName: string, day: number, attempt: number): string {
  const hex = createHash('sha256').update(`${requestName} ${day} ${attempt}`).digest('hex')
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
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
