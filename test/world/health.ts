import type { HubHealth } from '../../protocol/model/hub-health.ts'

/** Bins 1, 2 … as a hub reports them when they are healthy and empty. */
export const healthyBins = (count = 4): HubHealth['bins'] =>
  Array.from({ length: count }, (_, index) => ({
    bin_number: index + 1,
    capacity: 10,
    enabled: true,
    status: 'healthy',
    door: 'closed',
    lift: 'down',
    occupied: false,
    fault_code: null,
    order_id: null,
  }))

/** A hub with four healthy, empty bins, and without fridges and doors. */
export const healthy: HubHealth = {
  accepting_orders: true,
  bins: healthyBins(),
  fridges: [],
  doors: [],
  unknown_operations: 0,
}
