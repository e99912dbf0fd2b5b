import type { LocalCore } from '../../edge/local-api/local-api.ts'
import type { CommandResult } from '../../protocol/mqtt/command.ts'
import { OPERATION, recordingCore, result } from '../world/local-core.ts'
import { demoHub } from '../support/demo-hub.ts'

const ORDER = '018f3c2a-7b4e-7c1d-9a3b-000000000001'

/** A hub that accepts every command and records it. */
export function scriptedHub() {
  const { core: recording, asked } = recordingCore()
  const state = {
    alarms: [
      { code: 'bin_fault', subject: 'bin 2', detail: 'open_door jam', raised_at: Date.UTC(2026, 2, 1) },
    ],
    held: { orders: false, bins: [] as number[] },
    doors: [
      { door: 'main', status: 'locked' as 'locked' | 'unlocked' },
      ...(['left', 'middle', 'right'] as const).map((side) => ({
        door: `fridge_1_${side}`,
        status: 'locked' as const,
      })),
    ],
    stock: demoHub.controllers
      .flatMap(({ devices }) => devices)
      .flatMap((device) =>
        device.kind !== 'cabinet'
          ? []
          : device.shelves.flatMap(({ shelf, rows }) =>
              Array.from({ length: rows }, (_, index) => ({
                product_id: device.number * 100 + shelf * 10 + index,
                name: `Snack ${device.number}${shelf}${index}`,
                upc: `04900000${device.number}${shelf}${index}0`,
                location: { cabinet: device.number, shelf, row: index + 1 },
                primary: true,
                quantity: 6,
                capacity: 12,
                blocked: index === 3 ? 'jam' : null,
              })),
            ),
      ),
    result: { outcome: 'executed', reason: null, data: null } as Pick<
      CommandResult,
      'outcome' | 'reason' | 'data'
    >,
  }
  const core: LocalCore = {
    ...recording,
    operate(body, reply) {
      asked.push(['operate', body])
      reply({ ...result('executed', null, null), ...state.result })
    },
    health: () => ({
      accepting_orders: !state.held.orders,
      unknown_operations: 1,
      bins: [1, 2, 3, 4].map((number) => ({
        bin_number: number,
        capacity: 10,
        enabled: !state.held.bins.includes(number),
        status: number === 2 ? 'fault' : 'healthy',
        door: 'closed',
        lift: number === 1 ? 'up' : 'down',
        occupied: number === 1,
        fault_code: number === 2 ? 'jam' : null,
        order_id: number === 1 ? ORDER : null,
      })),
      fridges: [{ fridge_number: 1, enabled: true, status: 'fault', temperature: 7.5, shutoff: true }],
      doors: state.doors,
    }),
    hold(what, isHeld) {
      asked.push(['hold', what, isHeld])
      if (what === 'orders') state.held = { ...state.held, orders: isHeld }
      return { ok: true }
    },
    held: () => state.held,
    alarms: () => state.alarms,
    foreignControllers: () => ['cabinets-left'],
    unknownOperations: () => [
      {
        operation_id: OPERATION,
        device: 'cabinet-1',
        action: 'dispense',
        location: { cabinet: 1, shelf: 1, row: 4 },
        product_id: 113,
        order_id: ORDER,
        order_number: 77,
        line_id: 1,
        at: Date.UTC(2026, 2, 1),
      },
    ],
    deadLetters: () => [
      { id: 7, kind: 'config', error: 'no such bin', body: '{}', at: Date.UTC(2026, 2, 1) },
    ],
    orders: () => [
      {
        order_id: ORDER,
        order_number: 77,
        phase: 'preparing',
        bins: [1],
        lines: [{ line_id: 1, product_id: 113, quantity: 2, dropped: 1, doubtful: 0 }],
      },
    ],
    stock: () => state.stock,
    readings: () => [{ fridge_number: 1, celsius: 7.5, age_min: 0, why: null }],
  }
  return { core, state, asked }
}
