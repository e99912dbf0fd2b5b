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
import { background, everyInBackground, isolated } from '../platform/work/background.ts'
import {
  auditUnsent,
  closeUnanswered,
  insertSent,
  readCommand,
  readFinished,
  recordFinished,
  type Finished,
} from './command-store.ts'
import { maySpeak } from './draining.ts'
import { noteHealth, type HubClocks } from './hub-state.ts'

export interface CommandRequest {
  hubId: number
  body: CommandBody
  /** The actor in the audit log. */
  actor: string
  /** The object in the audit log; by default the device. */
  object?: string
  /**
   * The name of the request behind the command. A repeated request has the same command id. The hub executes an id
   * once, so the repetition gets the first result and nothing moves again.
   */
  requestName?: string | undefined
  /** Timeout of the answer; `CloudSettings.commandTimeoutMs` by default. */
  timeoutMs?: number
}

/**
 * The known outcome of a command when its time is up.
 * - `executed`: done; `data` as in `CommandResult.data`.
 * - `refused`: nothing moved. `failed`: the hub tried, see `reason` (`CommandReason`).
 * - `offline`: nothing was sent, and nothing will be (I2).
 * - `timeout`: no answer arrived; it may or may not have happened. A late result still updates the command's row.
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

/** Sends commands to hubs and never queues one. The audit log has each command with its outcome. */
export interface Commands {
  send(request: CommandRequest): Promise<CommandOutcome>
}

export interface CommandPorts {
  context: CloudContext
  settings: GatewayLimits
  clocks: HubClocks
  /** Publishes to a hub. Returns false if the broker is not connected; then nothing was sent. */
  publish: (hubId: number, command: Command) => boolean
  /** Requests the hub's clock, from the hub or from the process that receives its messages. */
  findClock: (hubId: number) => void
  /** Subscribes to the hub's results, whichever process serves it. False if the broker is not connected. */
  listen: (hubId: number) => Promise<boolean>
  /**
   * The hub's state may have changed. Called last in the transaction that recorded it. `health`: the hub's report, if
   * it is still current; null: read the database.
   */
  hubHeard: (tx: Tx, hubId: number, health: HubHealth | null) => Promise<void>
}

/** Retry interval for results that the database did not accept. */
const RECORD_AGAIN_MS = 1000

interface Waiter {
  hubId: number
  /** Without a result, the waiter must read it from the database. */
  resolve(result?: Finished): void
}

/** Not of a hub that is retired or revoked: its board must receive nothing, although the broker may not end its session. */
const connectedSession = statement((q, at: { hubId: number; heardSince: number; now: number }) =>
  q
    .selectFrom('hub_sessions')
    .innerJoin('hubs', 'hubs.id', 'hub_sessions.hub_id')
    .select('session')
    .where('hub_id', '=', at.hubId)
    .where('is_connected', '=', 1)
    .where('last_heard_at', '>=', at.heardSince)
    .where((eb) => maySpeak(eb, at.now)),
)

/**
 * Commands to hubs (SPEC §6). The row is committed before the message is sent. The answer arrives by the result topic
 * or the ledger, whichever is first. A hub that answers has the outcome in its journal and outbox. So the caller is
 * answered at once, and the row follows with the ledger, or soon without it.
 *
 * A periodic sweep closes the open commands of a dead process, instead of a row of due work for each command. Such a
 * row would cost every command an insert and a delete while its caller waits at a door. The sweep is one update over an
 * index of open commands; it closes all of them, without a limit.
 */
export class CommandSender implements Commands {
  readonly #ports: CommandPorts
  readonly #waiters = new Map<string, Waiter>()
  /** Results that callers already have but the database does not have yet. */
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
    const startedAt = runtime.clock.monotonic()
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
    // The repetition of an ended command.
    if (recorded === 'ended') return outcomeOf(id, await readFinished(db.kysely, id), 0)
    checkpoint('commands.recorded')
    const ttlMs = Math.min(settings.commandTtlMs, timeoutMs)
    const answer = this.#answerTo(id, hubId, timeoutMs)
    if (!publish(hubId, { command_id: id, session, expires_monotonic: hubNow + ttlMs, body })) {
      this.#waiters.get(id)?.resolve()
      const nothing = { command_id: id, outcome: 'refused', reason: 'offline', data: null } as const
      await db.transact<unknown>((tx) =>
        // An earlier copy may have been executed, so the command keeps its id.
        recorded === 'repeated'
          ? closeUnanswered(tx, runtime.clock, { id })
          : recordFinished(tx, runtime.clock, hubId, [nothing]),
      )
      return { kind: 'offline' }
    }
    checkpoint('commands.published')
    const finished = (await answer) ?? (await readFinished(db.kysely, id)) ?? (await this.#giveUp(id))
    return outcomeOf(id, finished, runtime.clock.monotonic() - startedAt)
  }

  /** The id of a command with a named request follows from the name, while the name is valid. */
  async #idOf({ requestName }: CommandRequest): Promise<string> {
    const { db, runtime } = this.#ports.context
    if (requestName === undefined) return uuidv7(runtime)
    const now = runtime.clock.now()
    const today = Math.floor(now / KEEP_MS)
    const first = await readCommand(db.kysely, commandId(requestName, today - 1, 0))
    const day = first && first.created_at > now - KEEP_MS ? today - 1 : today
    // A refused command moved nothing, so the repetition is a new try with a new id.
    for (let attempt = 0; ; attempt += 1) {
      const id = commandId(requestName, day, attempt)
      if ((await readCommand(db.kysely, id))?.state !== 'refused') return id
    }
  }

  /** A result arrived on its topic. `isHeld`: this process holds the hub. */
  onResult(hubId: number, result: CommandResult, isHeld: boolean): void {
    const { settings } = this.#ports
    const waiter = this.#waiters.get(result.command_id)
    const isWaitedFor = waiter?.hubId === hubId
    if (!isHeld && !isWaitedFor) return
    if (isWaitedFor) this.#answerWith(waiter, result)
    // The ledger brings the outcomes of further commands.
    else if (this.#unrecordedOf(hubId).length >= settings.mailbox) return
    this.#unrecorded.set(result.command_id, { hubId, result })
    this.#recordSoon(settings.recordResultsMs)
  }

  /** Records the hub's health first, so that the next read agrees with the answer. */
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

  #unrecordedOf(hub: number): { hubId: number; result: Finished }[] {
    return [...this.#unrecorded.values()].filter(({ hubId }) => hubId === hub)
  }

  #recordSoon(delayMs: number): void {
    const { context } = this.#ports
    this.#cancelRecord ??= context.runtime.clock.after(delayMs, () =>
      background(context, 'results of commands', () =>
        this.#recordResults().finally(() => {
          // Retries results that the database did not accept.
          if (this.#unrecorded.size > 0) this.#recordSoon(RECORD_AGAIN_MS)
        }),
      ),
    )
  }

  /** Whether a caller waits for the result of a command to the hub. */
  isAwaited(hubId: number): boolean {
    return [...this.#waiters.values()].some((waiter) => waiter.hubId === hubId)
  }

  /** A result arrived in the ledger and is committed. */
  onFinished(commandId: string): void {
    this.#unrecorded.delete(commandId)
    this.#waiters.get(commandId)?.resolve()
  }

  /** The session of a connected hub, and the hub's clock in it. Requests the clock if it is not known. */
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
    const now = runtime.clock.now()
    const heardSince = now - settings.onlineWithinMs
    const [row] = await connectedSession(db.kysely, { hubId, heardSince, now })
    return row?.session
  }

  /** Resolves when the command is finished, with the result if this process has it; or after `timeoutMs`. */
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

  /**
   * Records results that the ledger has not recorded: the ledger entry is late, or the hub refused the session or time,
   * which the ledger never reports.
   */
  async #recordResults(): Promise<void> {
    const { context } = this.#ports
    const { db, runtime, checkpoint } = context
    this.#cancelRecord?.()
    this.#cancelRecord = undefined
    // Each result is removed after its commit, because the ledger may never report it.
    for (const hubId of new Set([...this.#unrecorded.values()].map((one) => one.hubId))) {
      const unrecordedNow = this.#unrecordedOf(hubId)
      const results = unrecordedNow.map(({ result }) => result)
      await isolated(context, `results of hub ${hubId}`, async () => {
        await db.transact((tx) => recordFinished(tx, runtime.clock, hubId, results))
        for (const unrecorded of unrecordedNow) {
          const { command_id: id } = unrecorded.result
          if (this.#unrecorded.get(id) === unrecorded) this.#unrecorded.delete(id)
        }
        checkpoint('commands.finished')
      })
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

/** A UUIDv8 (RFC 9562 §5.8) from a request's name, the day of the name's first use, and the try. */
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
