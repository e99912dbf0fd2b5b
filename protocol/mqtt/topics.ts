/**
 * Topics. A hub's MQTT user name is its place in the tree, so that a broker's access rules need one pattern (SPEC §2):
 * a hub publishes below `larder/v1/<user>/up/` and subscribes below `larder/v1/<user>/down/`, and nowhere else.
 */
const ROOT = 'larder/v1'

export const hubUser = (hubId: number): string => `hub-${hubId}`

export const upChannels = ['presence', 'hello', 'heartbeat', 'entries', 'telemetry', 'ack', 'result'] as const
export type UpChannel = (typeof upChannels)[number]
export const downChannels = ['welcome', 'hail', 'entries', 'ack', 'command'] as const
export type DownChannel = (typeof downChannels)[number]

export const upTopic = (hubId: number, channel: UpChannel): string =>
  `${ROOT}/${hubUser(hubId)}/up/${channel}`
export const downTopic = (hubId: number, channel: DownChannel): string =>
  `${ROOT}/${hubUser(hubId)}/down/${channel}`

/** What a hub subscribes to. */
export const downFilter = (hubId: number): string => `${ROOT}/${hubUser(hubId)}/down/#`
/** What the cloud subscribes to. */
export const upFilter = `${ROOT}/+/up/#`
/** Cloud processes tell one another here that a hub's outbox has grown. A hint: each also looks by itself. */
export const nudgeTopic = `${ROOT}/cloud/nudge`
/** The will of a cloud process: its leases need not be waited for. */
export const goneTopic = `${ROOT}/cloud/gone`
/** Asks a cloud process whether it lives. */
export const callTopic = `${ROOT}/cloud/call`
/** Its answer. */
export const hereTopic = `${ROOT}/cloud/here`

/** Takes an upward topic apart; `undefined` for anything else. */
export function parseUpTopic(topic: string): { hubId: number; channel: UpChannel } | undefined {
  const match = /^larder\/v1\/hub-([1-9]\d{0,9})\/up\/([a-z]+)$/.exec(topic)
  const channel = upChannels.find((known) => known === match?.[2])
  return match && channel ? { hubId: Number(match[1]), channel } : undefined
}

/** Takes a downward topic apart for the hub that owns it; `undefined` for anything else. */
export function parseDownTopic(hubId: number, topic: string): DownChannel | undefined {
  return downChannels.find((channel) => topic === downTopic(hubId, channel))
}
