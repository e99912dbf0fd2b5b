import { readBinOrders } from '../../../cloud/commerce/orders/bin-room.ts'
import { confirmExternal } from '../../../cloud/commerce/payments/confirm.ts'
import type { CloudContext } from '../../../cloud/platform/context.ts'

/**
 * An integrator's key confirms the claim on a bin, as `open_bin` does. Returns the order's id; null if no
 * claim is open there.
 */
export async function confirmClaim(
  context: CloudContext,
  { hubId, bin, key }: { hubId: number; bin: number; key: string },
): Promise<number | null> {
  const orders = await readBinOrders(context.db.kysely, [hubId])
  const orderId = orders.get(hubId)?.get(bin)?.reserved_for_order ?? null
  if (orderId === null) return null
  return confirmExternal(context, { hubId, bin, orderId, key, audit: { actor: `key:${key}`, detail: {} } })
}
