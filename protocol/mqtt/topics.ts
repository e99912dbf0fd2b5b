/**
 * Topics. A hub's MQTT user name is its place in the tree, so that a broker's access rules need one pattern (SPEC §2):
 * a hub publishes below `larder/v1/<user>/up/` and subscribes below `larder/v1/<user>/down/`, and nowhere else.
 */
const ROOT = 'larder/v1'

export const hubUser = (hubId: number): string => `hub-${hubId}`

export const upChannels = [
  'presence',
  'hello',
  'heartbeat',
  'entries',
  'telemetry',
  'ack',
  'result',
  'storage',
] as const
export type UpChannel = (typeof upChannels)[number]
export const downChannels = ['welcome', 'hail', 'later', 'entries', 'ack', 'command'] as const
export type DownChannel = (typeof downChannels)[number]

export const upTopic = (hubId: number, channel: UpChannel): string =>
  `${ROOT}/${hubUser(hubId)}/up/${channel}`
export const downTopic = (hubId: number, channel: DownChannel): string =>
  `${ROOT}/${hubUser(hubId)}/down/${channel}`

/** What a hub subscribes to. */
export const downFilter = (hubId: number): string => `${ROOT}/${hubUser(hubId)}/down/#`
/** What a cloud process subscribes to that is alone with its broker: all hubs. */
export const upFilter = `${ROOT}/+/up/#`
/** What the one of several subscribes to that serves the hub (SPEC §7). */
export const hubFilter = (hubId: number): string => `${ROOT}/${hubUser(hubId)}/up/#`

export const cloudChannels = ['here', 'gone', 'nudge', 'handed', 'ask', 'clock'] as const
export type CloudChannel = (typeof cloudChannels)[number]

/** What cloud processes say to one another. */
export const cloudTopic = (channel: CloudChannel): string => `${ROOT}/cloud/${channel}`

/** The channel between cloud processes that a topic is; `undefined` for anything else. */
export const parseCloudTopic = (topic: string): CloudChannel | undefined =>
  cloudChannels.find((channel) => topic === cloudTopic(channel))

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
