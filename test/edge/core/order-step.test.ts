import { expect, test } from 'vitest'
import { ordersStep } from '../../../edge/core/orders/order-step.ts'
import type { OrderWorld } from '../../../edge/core/orders/order-view.ts'

test('an order that waits for a bin is checked at the end of its time, and not repeatedly in the last millisecond', () => {
  const world = (now: number): OrderWorld => ({
    now,
    live: true,
    startUpGraceMs: 0,
    bins: [],
    times: {
      prepareTimeoutMs: 1,
      prepareGraceMs: 1,
      unclaimedTimeoutMs: 1,
      emptyDebounceMs: 1,
      lateDropMs: 1,
    },
    orders: [
      {
        id: 'order',
        phase: 'queued',
        reservedBin: null,
        openWhenReady: false,
        startBy: 1000,
        preparingAt: 0,
        readyAt: 0,
        collectingAt: 0,
        units: [{ lineId: 1, unit: 0, state: 'waiting', bin: null, choice: undefined }],
        settlingMs: 0,
        accounted: true,
      },
    ],
  })
  expect(ordersStep(world(400))).toEqual({ kind: 'wait', ms: 601 })
  expect(ordersStep(world(1000))).toEqual({ kind: 'wait', ms: 1 })
  expect(ordersStep(world(1001))).toMatchObject({ kind: 'end', reason: 'start_by' })
})
