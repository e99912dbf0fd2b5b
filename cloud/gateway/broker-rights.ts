import { downFilter, parseUpTopic } from '../../protocol/mqtt/topics.ts'

/**
 * What a hub may do at the embedded broker (SPEC §2): publish below its own `up/`, subscribe to its own `down/#`.
 * Anything else, shared subscriptions included, is refused.
 */

/** The hub that a user name belongs to. */
export function hubOfUser(user: string): number | undefined {
  const match = /^hub-([1-9]\d{0,9})$/.exec(user)
  return match ? Number(match[1]) : undefined
}

export const mayPublish = (hubId: number, topic: string): boolean => parseUpTopic(topic)?.hubId === hubId

export const maySubscribe = (hubId: number, filter: string): boolean => filter === downFilter(hubId)
