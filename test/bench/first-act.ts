import { z } from 'zod'
import { sleep } from '../../protocol/model/runtime.ts'
import { ask, place, type CustomerOptions } from './customer.ts'
import type { Installation } from './installation.ts'

/** By then the hub has the order, and nothing moves. */
const SETTLE_MS = 1000
/** The controllers of the demo hub that dispense. */
const VENDING = ['cabinets-left', 'cabinets-right']
const POLL_MS = 4
const PATIENCE_MS = 30_000

const Actuations = z.array(z.object({ n: z.int() }))

/**
 * Milliseconds from the start of the hub's program to its first motion. An order waits in its journal,
 * because the dispensing controllers were silent, and every controller must connect first.
 */
export async function firstActuation(
  shop: CustomerOptions,
  installation: Pick<Installation, 'halt' | 'resume'>,
  name: string,
  product: number,
): Promise<number> {
  const { clock, simulatorUrl, hubId } = shop
  const room = `${simulatorUrl}/api/hubs/${hubId}`
  const since = async (n: number): Promise<{ n: number }[]> =>
    Actuations.parse(await ask('GET', `${room}/actuations?after=${n}`))
  for (const target of VENDING) await ask('POST', `${room}/faults`, { body: { type: 'silent_port', target } })
  const order = await place(shop, name, product)
  await sleep(clock, SETTLE_MS)
  await installation.halt('edge')
  await ask('DELETE', `${room}/faults`)
  const last = (await since(0)).at(-1)?.n ?? 0
  const started = clock.monotonic()
  installation.resume('edge')
  while ((await since(last)).length === 0) {
    if (clock.monotonic() - started > PATIENCE_MS) throw new Error('the hub moves nothing after its start')
    await sleep(clock, POLL_MS)
  }
  const took = clock.monotonic() - started
  await order.fetch()
  return took
}
