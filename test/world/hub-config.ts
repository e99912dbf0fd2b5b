import type { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'

/** The configuration that the cloud of a test sends to a hub. */
export const config: HubConfig = {
  accepting_orders: true,
  disabled_bins: [],
  disabled_fridges: [],
  confirmed_fridges: [],
  prepare_timeout_ms: 600_000,
  unclaimed_timeout_ms: 3_600_000,
  people: [],
}
