import { z } from 'zod'
import type { Random } from '../model/runtime.ts'
import type { MqttTransport, OpenTransport } from './transport.ts'

/** The address of a broker, or those of several of one cluster, separated by commas. */
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
 * Connections to the brokers of a cluster: the first to any of them, so that they are shared evenly, and each further one
 * to the next, so that one that is away costs an attempt.
 */
export function anyBroker<T extends MqttTransport>(
  brokers: readonly OpenTransport<T>[],
  random: Random,
): OpenTransport<T> {
  let next = Math.floor(random.fraction() * brokers.length)
  return (options, handlers) => brokers[next++ % brokers.length]!(options, handlers)
}
