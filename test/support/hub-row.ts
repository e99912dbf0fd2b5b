import type { Insertable } from 'kysely'
import type { Tables } from '../../cloud/platform/store/schema.ts'
import { openHub } from '../../cloud/operations/hubs/create-hub.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'

type HubRow = Insertable<Tables['hubs']>

/** A hub of owner 1 as a row of the cloud, open and without tax, except for the given fields. */
export const hubRow = <T extends Partial<HubRow>>(row: T) => ({
  owner_id: 1,
  name: 'Hub',
  street_address_1: '1 Main Street',
  street_address_2: null,
  city: 'Springfield',
  state: 'IL',
  postal_code: '62701',
  longitude: -89.65,
  latitude: 39.8,
  timezone: 'America/Chicago',
  mqtt_password_digest: '',
  former_passwords: null,
  ...openHub,
  external_payments: 'everyone' as const,
  tax_millipercent: 0,
  created_at: 0,
  ...row,
})

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
