import type { z } from 'zod'
import type { Log } from '../../protocol/model/log.ts'
import { cutShort } from '../../protocol/model/refusals.ts'
import { Command, type CommandReason, type CommandResult } from '../../protocol/mqtt/command.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { Ack, Batch, Hail, Later, Welcome } from '../../protocol/mqtt/session.ts'
import { parseDownTopic, type DownChannel } from '../../protocol/mqtt/topics.ts'
import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Inbox, LeaveOut } from '../journal/inbox.ts'

/** The channels of a session. `enrolment/` and `diagnosis/diagnosis.ts` have the others and need no session. */
type SessionChannel = Exclude<DownChannel, 'certificate' | 'diagnosis' | 'erase' | 'move'>

const schemas = {
  welcome: Welcome,
  hail: Hail,
  later: Later,
  entries: Batch,
  ack: Ack,
  command: Command,
} satisfies Record<SessionChannel, z.ZodType>

const isOfSession = (channel: DownChannel): channel is SessionChannel => channel in schemas

/** The handler of each of the cloud's channels. */
type InboundHandlers = {
  [Channel in SessionChannel]: (message: z.infer<(typeof schemas)[Channel]>) => void
}

/**
 * Parses the cloud's messages. A message that is too long, not JSON, of an unknown topic or against its
 * schema is logged and dropped (SPEC §1). No network input may stop the hub. Errors of handlers are not
 * caught here.
 */
export function createInbound(
  hubId: number,
  maxMessage: number,
  log: Log,
  handlers: InboundHandlers,
): (topic: string, payload: string) => void {
  function dispatch(channel: SessionChannel, message: unknown): boolean {
    const parsed = schemas[channel].safeParse(message)
    if (!parsed.success) return false
    const handle = handlers[channel] as (message: unknown) => void
    handle(parsed.data)
    return true
  }
  return (topic, payload) => {
    const channel = parseDownTopic(hubId, topic)
    const drop = (why: string): void =>
      log.warn({ topic: cutShort(topic), length: payload.length, why }, 'a message from the cloud is dropped')
    if (channel === undefined || !isOfSession(channel)) return drop('unknown topic')
    if (payload.length > maxMessage) return drop('too long')
    const message = parseMessage(payload)
    if (message === undefined) return drop('not JSON, or nested too deeply')
    if (!dispatch(channel, message)) drop('not of its schema')
  }
}

interface StreamReceiverOptions {
  inbox: Inbox
  log: Log
  checkpoint: Checkpoint
  applyEntry(body: unknown, leaveOut: LeaveOut): void
  publish(ack: Ack): void
  /** Called for a batch of an epoch that no welcome has announced: the welcome was lost, or is late. */
  onForeign(): void
}

export type StreamReceiver = ReturnType<typeof createStreamReceiver>

/** The hub's receiver of the cloud's stream over one connection. It acknowledges only after its commit. */
export function createStreamReceiver(options: StreamReceiverOptions) {
  const { inbox, log, checkpoint } = options

  function acknowledge(position: { epoch: string; cursor: number; tag: number }, flags: Partial<Ack>): void {
    checkpoint('sync.before-ack')
    options.publish({ stream: 'outbox', ...position, resend: false, fork: false, ...flags })
    checkpoint('sync.after-ack')
  }

  return {
    /** Follows the epoch of the cloud's stream that the welcome announced. */
    takeUp(epoch: string): void {
      const judged = inbox.takeUp(epoch)
      if (judged === 'new') log.info({ epoch }, "the cloud's stream has a new epoch")
      if (judged === 'left') acknowledge({ epoch, cursor: 0, tag: 0 }, { fork: true })
    },
    receive(batch: Batch): void {
      const kind = inbox.receive(batch, (body, leaveOut) => options.applyEntry(body, leaveOut))
      if (kind === 'foreign') return options.onForeign()
      const { cursor, tag } = inbox.position()
      acknowledge({ epoch: batch.epoch, cursor, tag }, { resend: kind === 'gap', fork: kind === 'fork' })
    },
  }
}

/**
 * Whether a command may still be executed (I2, SPEC §6). It must be for this connection, and arrive before
 * its expiry on this hub's own monotonic clock. A refused command leaves no trace at the hub.
 */
export function judgeCommand(
  command: Pick<Command, 'session' | 'expires_monotonic'>,
  session: string,
  monotonicMs: number,
): 'pass' | 'stale_session' | 'expired' {
  if (command.session !== session) return 'stale_session'
  return monotonicMs > command.expires_monotonic ? 'expired' : 'pass'
}

export function refusal(command: Command, reason: CommandReason): CommandResult {
  const { command_id, session } = command
  return { command_id, session, outcome: 'refused', reason, data: null }
}
