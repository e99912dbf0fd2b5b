import { createServer } from 'node:net'
import { type Clock, sleep } from '../../protocol/model/runtime.ts'
import { jsonInterface } from '../interface/client.ts'
import { guestWithCart } from './guest.ts'

export interface ReadinessOptions {
  clock: Clock
  baseUrl: string
  hubId: number
  /** Port of the hub's management service, if it runs. */
  managementPort?: number
  timeoutMs: number
  /** Called between attempts: true ends the wait. */
  isGivenUp(): boolean
}

/**
 * Waits until a customer could order: the cloud answers, the hub is online and takes orders, and its management service
 * listens. Opens a cart and deletes it again, because no smaller check proves that. Returns false after `timeoutMs`.
 */
export async function waitUntilReady(options: ReadinessOptions): Promise<boolean> {
  const { clock } = options
  const end = clock.monotonic() + options.timeoutMs
  while (clock.monotonic() < end && !options.isGivenUp()) {
    if ((await canOpenCart(options)) && (await listens(options.managementPort))) return true
    await sleep(clock, 200)
  }
  return false
}

const listens = async (port: number | undefined): Promise<boolean> =>
  port === undefined || !(await isPortFree(port))

async function canOpenCart({ baseUrl, hubId }: ReadinessOptions): Promise<boolean> {
  try {
    const { client, userId, orderId } = await guestWithCart(baseUrl, {
      subject: 'demo-launcher',
      hubId,
      tries: 1,
    })
    await client.call('DELETE /users/{user_id}/orders/{order_id}', {
      params: { user_id: userId, order_id: orderId },
    })
    return true
  } catch {
    return false
  }
}

/** Whether a program answers a request for this address with success. */
export const answers = (url: string): Promise<boolean> =>
  jsonInterface({ url, name: 'the program' })
    .ask('GET', '')
    .then(
      () => true,
      () => false,
    )

/** Whether the port is free on this machine's loopback address. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
