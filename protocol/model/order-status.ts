/** `processing_status` of an order. The gaps leave room for further states. */
export const OrderStatus = {
  NEW: 0,
  PENDING_PAYMENT: 10,
  QUEUED: 20,
  PREPARING: 30,
  READY: 40,
  COLLECTING: 50,
  COMPLETED: 60,
  CANCELLED: 70,
  TIMED_OUT: 80,
  FAILED: 90,
  EXPIRED: 100,
} as const
export type OrderStatusName = keyof typeof OrderStatus
export type OrderStatus = (typeof OrderStatus)[OrderStatusName]

const S = OrderStatus

/** The causes of transitions. Each cause is an event that has happened. */
export type OrderCause =
  | 'checkout' //           pay or debit froze the cart
  | 'payment_failed' //     declined, cancelled or abandoned
  | 'payment_completed' //  processor, wallet, or an integrator's confirmation
  | 'hub_preparing'
  | 'hub_ready'
  | 'hub_collecting'
  | 'hub_completed'
  | 'cancelled' //          by the customer, or a full refund before picking
  | 'preparation_timeout'
  | 'hub_failed' //         hardware
  | 'unclaimed'
  | 'idle' //               unpaid past its time
  | 'deleted' //            unpaid, by its customer
  | 'merged' //             unpaid, into another cart of its customer

/**
 * Every legal transition: cause → from → to. An absent transition is illegal. A transition to the same state succeeds
 * without effect.
 */
export const orderTransitions: Record<OrderCause, Partial<Record<OrderStatus, OrderStatus>>> = {
  checkout: { [S.NEW]: S.PENDING_PAYMENT },
  payment_failed: { [S.PENDING_PAYMENT]: S.NEW },
  payment_completed: { [S.PENDING_PAYMENT]: S.QUEUED },
  hub_preparing: { [S.QUEUED]: S.PREPARING },
  hub_ready: { [S.PREPARING]: S.READY },
  hub_collecting: { [S.READY]: S.COLLECTING },
  hub_completed: { [S.READY]: S.COMPLETED, [S.COLLECTING]: S.COMPLETED },
  cancelled: { [S.QUEUED]: S.CANCELLED },
  preparation_timeout: { [S.QUEUED]: S.TIMED_OUT, [S.PREPARING]: S.TIMED_OUT },
  hub_failed: {
    [S.QUEUED]: S.FAILED,
    [S.PREPARING]: S.FAILED,
    [S.READY]: S.FAILED,
    [S.COLLECTING]: S.FAILED,
  },
  unclaimed: { [S.READY]: S.FAILED, [S.COLLECTING]: S.FAILED },
  idle: { [S.NEW]: S.EXPIRED, [S.PENDING_PAYMENT]: S.EXPIRED },
  deleted: { [S.NEW]: S.CANCELLED },
  merged: { [S.NEW]: S.EXPIRED },
}

export type TransitionResult =
  { kind: 'moved'; to: OrderStatus } | { kind: 'unchanged' } | { kind: 'illegal'; from: OrderStatus }

/** The pure transition function of an order. */
export function transition(from: OrderStatus, cause: OrderCause): TransitionResult {
  const table = orderTransitions[cause]
  const to = table[from]
  if (to !== undefined) return { kind: 'moved', to }
  if (Object.values(table).includes(from)) return { kind: 'unchanged' }
  return { kind: 'illegal', from }
}

const nameByStatus = new Map<number, OrderStatusName>(
  Object.entries(OrderStatus).map(([name, code]) => [code, name as OrderStatusName]),
)

export function orderStatusName(status: OrderStatus): OrderStatusName {
  return nameByStatus.get(status)!
}

/** The order still needs its customer: at most one such order for each user and hub. */
export const isActive = (status: OrderStatus): boolean => status <= S.COLLECTING
/** The order still needs the hub (`has_pending_orders`, `order_in_progress`). */
export const isInProgress = (status: OrderStatus): boolean => status >= S.QUEUED && status <= S.COLLECTING
export const isEditable = (status: OrderStatus): boolean => status === S.NEW
