import { z } from 'zod'
import type { Random } from '../model/runtime.ts'
import type { MqttTransport, OpenTransport } from './transport.ts'

/** The address of a broker, or of several brokers of one cluster, separated by commas. */
export const BrokerUrls = z
  .string()
  .transform((text) => text.split(',').map((url) => url.trim()))
  .pipe(
    z.array(
      z
        .string()
        .regex(/^mqtts?:\/\/[^\s/]/, 'must begin with mqtt:// or mqtts://')
        .refine((url) => URL.canParse(url), 'must be an address'),
    ),
  )

/**
 * Connections to the brokers of a cluster. The first goes to any of them, to share the load evenly. Each further one
 * goes to the next broker, so that a broker that is down costs only one attempt.
 */
export function anyBroker<T extends MqttTransport>(
  brokers: readonly OpenTransport<T>[],
  random: Random,
): OpenTransport<T> {
  let next = Math.floor(random.fraction() * brokers.length)
  return (options, handlers) => brokers[next++ % brokers.length]!(options, handlers)
}
