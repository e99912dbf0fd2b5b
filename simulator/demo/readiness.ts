import { createServer } from 'node:net'
import { z } from 'zod'
import { type Clock, sleep } from '../../protocol/model/runtime.ts'

const Token = z.object({ access_token: z.string() })
const User = z.object({ user_id: z.int() })
const Order = z.object({ order_id: z.int() })

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
  const identity = { sub: 'demo-launcher', anonymous: true }
  const token = Token.safeParse(await request('POST', `${baseUrl}/demo/identity/token`, { body: identity }))
  if (!token.success) return false
  const bearer = token.data.access_token
  const user = User.safeParse(await request('POST', `${baseUrl}/users/user/bootstrap/guest`, { bearer }))
  if (!user.success) return false
  const orders = `${baseUrl}/users/${user.data.user_id}/orders`
  const order = Order.safeParse(await request('POST', `${orders}?hub_id=${hubId}`, { bearer }))
  if (!order.success) return false
  await request('DELETE', `${orders}/${order.data.order_id}`, { bearer })
  return true
}

/** The JSON of a successful answer; `undefined` for any other, or none. */
export async function request(
  method: 'GET' | 'POST' | 'DELETE',
  url: string,
  { bearer, body }: { bearer?: string; body?: object } = {},
): Promise<unknown> {
  const headers = {
    ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
    ...(body && { 'Content-Type': 'application/json' }),
  }
  try {
    const response = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return response.ok ? await response.json() : undefined
  } catch {
    return undefined
  }
}

/** Whether the port is free on this machine's loopback address. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
