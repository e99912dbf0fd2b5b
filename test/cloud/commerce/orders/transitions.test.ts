import { expect, test } from 'vitest'
import {
  isActive,
  OrderStatus as S,
  orderTransitions,
  transition,
  type OrderCause,
  type OrderStatus,
} from '../../../../protocol/model/order-status.ts'
import { statuses } from '../../../world/shop.ts'

/** A second copy of the table in `order-status.ts`: from → cause → to. */
const legal: Partial<Record<OrderStatus, Partial<Record<OrderCause, OrderStatus>>>> = {
  [S.NEW]: { checkout: S.PENDING_PAYMENT, idle: S.EXPIRED, deleted: S.CANCELLED, merged: S.EXPIRED },
  [S.PENDING_PAYMENT]: { payment_failed: S.NEW, payment_completed: S.QUEUED, idle: S.EXPIRED },
  [S.QUEUED]: {
    hub_preparing: S.PREPARING,
    cancelled: S.CANCELLED,
    preparation_timeout: S.TIMED_OUT,
    hub_failed: S.FAILED,
  },
  [S.PREPARING]: { hub_ready: S.READY, preparation_timeout: S.TIMED_OUT, hub_failed: S.FAILED },
  [S.READY]: {
    hub_collecting: S.COLLECTING,
    hub_completed: S.COMPLETED,
    hub_failed: S.FAILED,
    unclaimed: S.FAILED,
  },
  [S.COLLECTING]: { hub_completed: S.COMPLETED, hub_failed: S.FAILED, unclaimed: S.FAILED },
}
const causes = Object.keys(orderTransitions) as OrderCause[]

test.each(causes.flatMap((cause) => statuses.map((from) => ({ cause, from }))))(
  'the cause $cause leads from $from only to the status in the contract',
  ({ cause, from }) => {
    const to = legal[from]?.[cause]
    const result = transition(from, cause)
    if (to === undefined) expect(result.kind).not.toBe('moved')
    else expect(result).toEqual({ kind: 'moved', to })
  },
)

test('a repeated cause changes nothing the second time', () => {
  for (const from of statuses)
    for (const cause of causes) {
      const first = transition(from, cause)
      if (first.kind === 'moved') expect(transition(first.to, cause)).toEqual({ kind: 'unchanged' })
    }
})

test('an ended order has no further transition', () => {
  for (const from of statuses.filter((status) => !isActive(status)))
    for (const cause of causes) expect(transition(from, cause).kind).not.toBe('moved')
})
