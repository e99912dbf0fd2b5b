import { HubStatus } from '../../../../protocol/contract/owner-hubs.ts'
import { defineTable, flag, id, instant, int, oneOf, real, text } from '../table.ts'

/** Hubs, whose they are, and how they are built. */
export const hubTables = {
  owners: defineTable({ id, name: text }),
  hubs: defineTable({
    id,
    owner_id: int.references('owners').fixed,
    name: text,
    street_address_1: text,
    street_address_2: text.nullable,
    city: text,
    state: text,
    postal_code: text,
    longitude: real,
    latitude: real,
    timezone: text,
    hub_status: oneOf(HubStatus.options),
    mqtt_password_digest: text,
    /** Desired state, sent to the hub as `config`. */
    accepting_orders: flag,
    disabled_bins: text,
    disabled_fridges: text,
    /** Sales tax in hundredths of a percent. */
    tax_basis_points: int.check('>= 0'),
    created_at: instant.fixed,
  }).index('hubs_by_owner', ['owner_id']),
  /** Layout (O §2): what shelves a hub's cabinets have, and how many rows these. The cloud owns it. */
  hub_shelves: defineTable({
    hub_id: int.references('hubs'),
    cabinet: int.check('between 1 and 4'),
    shelf: int.check('>= 1'),
    total_rows: int.check('>= 1'),
  }).primaryKey('hub_id', 'cabinet', 'shelf'),
  /** The fridges of a hub, and the cabinets that their doors give on. */
  hub_fridges: defineTable({
    hub_id: int.references('hubs'),
    fridge: int.check('>= 1'),
    left_cabinet: int,
    middle_cabinet: int,
    right_cabinet: int,
  }).primaryKey('hub_id', 'fridge'),
  /** The cabinets behind doors of disabled fridges; written with `hubs.disabled_fridges`, and from nothing else. */
  closed_cabinets: defineTable({ hub_id: int.references('hubs'), cabinet: int }).primaryKey(
    'hub_id',
    'cabinet',
  ),
  /** Where a hub's management service is, and the key by which it is known. */
  hub_management: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    host: text,
    port: int.check('between 1 and 65535'),
    /** `SHA256:…` */
    host_key: text,
  }),
  /** Bins enabled and disabled over SSH: written before the hub is asked, so that no outcome is lost. */
  management_changes: defineTable({
    id: text.primaryKey.fixed,
    hub_id: int.references('hubs').fixed,
    bin_number: int.fixed,
    enabled: flag.fixed,
    actor: text.fixed,
    state: oneOf(['pending', 'done', 'failed', 'superseded', 'unknown']),
    created_at: instant.fixed,
  }).index('management_changes_by_bin', ['hub_id', 'bin_number', 'created_at']),
}
