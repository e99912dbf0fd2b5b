/**
 * Topics. A hub's topics contain its MQTT user name, so that a broker needs one access pattern (SPEC §2). A hub
 * publishes only below `larder/v1/<user>/up/` and subscribes only below `larder/v1/<user>/down/`.
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
  'certificate',
  'diagnosis',
  'erased',
  'moved',
] as const
export type UpChannel = (typeof upChannels)[number]
export const downChannels = [
  'welcome',
  'hail',
  'later',
  'entries',
  'ack',
  'command',
  'certificate',
  'diagnosis',
  'erase',
  'move',
] as const
export type DownChannel = (typeof downChannels)[number]

export const upTopic = (hubId: number, channel: UpChannel): string =>
  `${ROOT}/${hubUser(hubId)}/up/${channel}`
export const downTopic = (hubId: number, channel: DownChannel): string =>
  `${ROOT}/${hubUser(hubId)}/down/${channel}`

/** The subscription of a hub. */
export const downFilter = (hubId: number): string => `${ROOT}/${hubUser(hubId)}/down/#`
/** The subscription of a cloud process that is the only one at its broker: all hubs. */
export const upFilter = `${ROOT}/+/up/#`
/** The subscription of a cloud process that serves this hub, if there are several processes (SPEC §7). */
export const hubFilter = (hubId: number): string => `${ROOT}/${hubUser(hubId)}/up/#`

export const cloudChannels = ['here', 'gone', 'nudge', 'handed', 'ask', 'clock'] as const
export type CloudChannel = (typeof cloudChannels)[number]

/** A topic between the cloud processes of a cell. Other cells at the same broker have other topics (SPEC §7). */
export const cloudTopic = (channel: CloudChannel, cell = 0): string =>
  `${ROOT}/cloud/${cell === 0 ? '' : `${cell}/`}${channel}`

/** The topics between the cloud processes of a cell. */
export const cloudTopics = (cell: number) => ({
  of: (channel: CloudChannel): string => cloudTopic(channel, cell),
  all: cloudChannels.map((channel) => cloudTopic(channel, cell)),
  /** The channel of a topic; `undefined` for other topics. */
  parse: (topic: string): CloudChannel | undefined =>
    cloudChannels.find((channel) => topic === cloudTopic(channel, cell)),
})

/** Parses an upward topic; `undefined` for other topics. */
export function parseUpTopic(topic: string): { hubId: number; channel: UpChannel } | undefined {
  const match = /^larder\/v1\/hub-([1-9]\d{0,9})\/up\/([a-z]+)$/.exec(topic)
  const channel = upChannels.find((known) => known === match?.[2])
  return match && channel ? { hubId: Number(match[1]), channel } : undefined
}

/** Parses a downward topic of the hub; `undefined` for other topics. */
export function parseDownTopic(hubId: number, topic: string): DownChannel | undefined {
  return downChannels.find((channel) => topic === downTopic(hubId, channel))
}
