import { expect, test } from 'vitest'
import {
  isActive,
  OrderStatus as S,
  orderTransitions,
  transition,
  type OrderCause,
  type OrderStatus,
} from '../../../../protocol/model/order-status.ts'
import { statuses } from '../../support/shop.ts'

/** The table of `order-status.ts`, written out a second time: from → cause → to. */
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
  '$cause from $from goes where the contract says, and nowhere else',
  ({ cause, from }) => {
    const to = legal[from]?.[cause]
    const result = transition(from, cause)
    if (to === undefined) expect(result.kind).not.toBe('moved')
    else expect(result).toEqual({ kind: 'moved', to })
  },
)

test('a cause that comes twice changes nothing the second time', () => {
  for (const from of statuses)
    for (const cause of causes) {
      const first = transition(from, cause)
      if (first.kind === 'moved') expect(transition(first.to, cause)).toEqual({ kind: 'unchanged' })
    }
})

test('an order that has ended moves no more', () => {
  for (const from of statuses.filter((status) => !isActive(status)))
    for (const cause of causes) expect(transition(from, cause).kind).not.toBe('moved')
})
