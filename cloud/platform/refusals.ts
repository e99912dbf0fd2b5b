import { Refusals } from '../../protocol/model/refusals.ts'
import type { CloudContext } from './context.ts'

/**
 * Kinds of refusals of unauthenticated or unauthorized parties.
 *
 * - credentials and rights over HTTP, and sign-ins
 * - topics and oversized packets at the embedded broker
 * - malformed messages of hubs
 * - hubs that use another hub's identity
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
