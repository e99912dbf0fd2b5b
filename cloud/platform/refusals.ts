import { Refusals } from '../../protocol/model/refusals.ts'
import type { CloudContext } from './context.ts'

/**
 * What the cloud refuses to strangers and to those who may not: credentials and rights over HTTP, sign-ins, topics and too long packets
 * at the embedded broker, messages of hubs that are not as they should be, and hubs whose identity another one has.
 */
const kinds = [
  'http_credential',
  'http_right',
  'mqtt_login',
  'mqtt_topic',
  'mqtt_packet',
  'hub_message',
  'hub_identity',
] as const

export type CloudRefusals = Refusals<(typeof kinds)[number]>

export const cloudRefusals = ({ log, runtime }: Pick<CloudContext, 'log' | 'runtime'>): CloudRefusals =>
  new Refusals(kinds, { log, clock: runtime.clock })
