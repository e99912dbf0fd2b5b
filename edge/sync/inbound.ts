import type { z } from 'zod'
import type { Log } from '../../protocol/model/log.ts'
import { cutShort } from '../../protocol/model/refusals.ts'
import { Command } from '../../protocol/mqtt/command.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { Ack, Batch, Hail, Later, Welcome } from '../../protocol/mqtt/session.ts'
import { parseDownTopic } from '../../protocol/mqtt/topics.ts'
import type { DownChannel } from '../../protocol/mqtt/topics.ts'

const schemas = {
  welcome: Welcome,
  hail: Hail,
  later: Later,
  entries: Batch,
  ack: Ack,
  command: Command,
} satisfies Record<DownChannel, z.ZodType>

/** The handler of each of the cloud's channels. */
export type InboundHandlers = {
  [Channel in DownChannel]: (message: z.infer<(typeof schemas)[Channel]>) => void
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
  function dispatch(channel: DownChannel, message: unknown): boolean {
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
    if (channel === undefined) return drop('unknown topic')
    if (payload.length > maxMessage) return drop('too long')
    const message = parseMessage(payload)
    if (message === undefined) return drop('not JSON, or nested too deeply')
    if (!dispatch(channel, message)) drop('not of its schema')
  }
}
