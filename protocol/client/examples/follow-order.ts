import type { Client } from '../client.ts'

/** The page's sentence for each state. */
const sentences: Partial<Record<string, string>> = {
  QUEUED: 'Your order is waiting for the hub.',
  PREPARING: 'Your order is being prepared.',
  READY: 'Your order is ready.',
  COLLECTING: 'The door is open: take your order.',
  COMPLETED: 'Enjoy!',
}

/**
 * A page that follows an order: it shows the present state and each change, until the last state. The client reconnects
 * after a loss. Leaving the page aborts the signal.
 */
export async function followOrder(
  customer: Client,
  order: { userId: number; orderId: number; signal?: AbortSignal },
  show: (sentence: string) => void,
): Promise<void> {
  for await (const { processing_status_name: status, queue_position: ahead, bins } of customer.followOrder(
    order,
  )) {
    const place = ahead !== null && ahead > 1 ? ` ${ahead - 1} before you.` : ''
    const where = status === 'READY' && bins.length > 0 ? ` Bin ${bins.join(', ')}.` : ''
    show(`${sentences[status] ?? `Your order has ended: ${status}.`}${place}${where}`)
  }
}
