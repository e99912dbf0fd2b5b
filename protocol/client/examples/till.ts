import { unwrap, type Client } from '../client.ts'

/** A till beside the service. */
export interface Till {
  hubId: number
  /** Takes the money, in cash or with its own terminal. False if the customer does not pay. */
  takeMoney: (cents: number) => Promise<boolean>
}

/**
 * A till that takes its own payment. It claims the customer's cart (`external`), which freezes the total and reserves a bin.
 * Opening that bin with the owner's key confirms the payment. The hub then prepares the order.
 */
export async function sellAtTill(
  customer: Client,
  owner: Client,
  { hubId, takeMoney }: Till,
  wanted: Readonly<Record<number, number>>,
): Promise<{ orderId: number; bin: number } | { refused: string }> {
  const { user_id } = unwrap(await customer.call('POST /users/user/bootstrap/guest'))
  const query = { hub_id: hubId }
  const cart = unwrap(await customer.call('POST /users/{user_id}/orders', { params: { user_id }, query }))
  const params = { user_id, order_id: cart.order_id }
  let total = 0
  for (const [product, quantity] of Object.entries(wanted)) {
    const body = { product_id: Number(product), quantity }
    const added = await customer.call('PUT /users/{user_id}/orders/{order_id}/order_item', {
      params,
      query,
      body,
    })
    // The error is a value with a code.
    if (!added.ok) return { refused: added.error.code }
    total = added.data.total
  }

  const body = { order_id: cart.order_id, payment_method_id: 'external', expected_total: total }
  const claimed = await customer.call('POST /users/payments/pay', { body })
  if (!claimed.ok) return { refused: claimed.error.code }
  const next = claimed.data.next_action
  if (next?.type !== 'integrator_confirmation') return { refused: 'paid already' }

  if (!(await takeMoney(claimed.data.amount))) {
    await customer.call('DELETE /users/{user_id}/orders/{order_id}', { params })
    return { refused: 'not paid' }
  }
  // `order_id`: if the claim has ended meanwhile, nothing opens and the till keeps no money.
  const confirmed = await owner.call('POST /owners/controls/open_bin', {
    query: { hub: hubId, bin: next.bin_number, order_id: cart.order_id },
  })
  if (!confirmed.ok) return { refused: confirmed.error.code }
  return { orderId: cart.order_id, bin: next.bin_number }
}
