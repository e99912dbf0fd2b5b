import { HubStatus } from '../../../../protocol/contract/owner-hubs.ts'
import { binUses, fridgeStates } from '../../../../protocol/mqtt/hub-entries.ts'
import { defineTable, flag, id, instant, int, oneOf, real, text } from '../table.ts'

/** Values of a hub's setting `external_payments`. `customers` excludes anonymous users. */
export const externalPayments = ['off', 'customers', 'everyone'] as const
export type ExternalPayments = (typeof externalPayments)[number]

/** Hubs, whose they are, and how they are built. */
export const hubTables = {
  owners: defineTable({ id, name: text, created_at: instant.fixed.default(0) }),
  hubs: defineTable({
    id,
    owner_id: int.references('owners'),
    /** When its present owner got it; 0 of the first owner. */
    owned_since: instant.default(0),
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
    /** When it was retired: it has no sale and no alarm, no login after `draining_until`, and keeps its books. */
    retired_at: instant.nullable,
    /** A retired hub signs in until then, so that its streams are delivered; null if they are, or if it is not retired. */
    draining_until: instant.nullable,
    mqtt_password_digest: text,
    /** Former passwords that an overlap keeps valid (`FormerPassword`), as JSON; null without one. */
    former_passwords: text.nullable,
    /** Desired state, sent to the hub as `config`. */
    accepting_orders: flag,
    disabled_bins: text,
    disabled_fridges: text,
    /** When people last confirmed each fridge, as the hub's configuration has it: JSON; null where nobody has. */
    confirmed_fridges: text.nullable,
    /** Who may claim an order for an integrator's payment: nobody, users with an account, or guests too. */
    external_payments: oneOf(externalPayments).default('off'),
    /** Sales tax in thousandths of a percent: 8.875 % is 8875. */
    tax_millipercent: int.check('>= 0'),
    /**
     * Another one with every change of what products the hub has and how they are found: their names, categories, whether they are
     * active. By chance: a database that was put back gives no number out a second time.
     */
    catalogue_version: int.default(0),
    /** The hardware description that the operator gave, as JSON: it can be exported if a card is lost. */
    hardware: text.nullable,
    /** Counts the changes of its hardware description. */
    desired_version: int.default(1),
    created_at: instant.fixed,
  }).index('hubs_by_owner', ['owner_id']),
  /** Owners that a hub had before, and when: they keep the books of that time. */
  former_owners: defineTable({
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    since: instant.fixed,
    /** Exclusive. */
    until: instant.fixed,
  })
    .primaryKey('hub_id', 'until')
    .index('former_owners_by_owner', ['owner_id']),
  /** Layout (O §2): what shelves a hub's cabinets have, and how many rows these. The cloud owns it. */
  hub_shelves: defineTable({
    hub_id: int.references('hubs'),
    cabinet: int.check('between 1 and 4'),
    shelf: int.check('>= 1'),
    total_rows: int.check('>= 1'),
    /** How many units each of its rows holds. */
    depth: int.check('>= 1'),
  }).primaryKey('hub_id', 'cabinet', 'shelf'),
  /** The fridges of a hub, and the cabinets that their doors give on. */
  hub_fridges: defineTable({
    hub_id: int.references('hubs'),
    fridge: int.check('>= 1'),
    left_cabinet: int,
    middle_cabinet: int,
    right_cabinet: int,
  }).primaryKey('hub_id', 'fridge'),
  /**
   * Places from which nothing is sold, and why; shelf and row 0: the whole cabinet. Written by `catalogue/withheld.ts` alone:
   * the owner's with `hubs.disabled_fridges`, the hub's as its ledger says.
   */
  withheld: defineTable({
    hub_id: int.references('hubs'),
    source: oneOf(['owner', 'hub']),
    cabinet: int,
    shelf: int,
    row: int,
    reason: text,
    since: instant,
  }).primaryKey('hub_id', 'cabinet', 'shelf', 'row', 'source'),
  /** How a hub's bins stand, as its ledger last said. */
  hub_bins: defineTable({
    hub_id: int.references('hubs'),
    bin: int,
    /** Units that fit into it at once. */
    capacity: int,
    state: oneOf(binUses),
    /** The order that holds it, or whose goods were left in it. */
    order_uuid: text.nullable,
    fault: text.nullable,
    since: instant,
  }).primaryKey('hub_id', 'bin'),
  /** How a hub's fridges stand, likewise. */
  hub_fridge_states: defineTable({
    hub_id: int.references('hubs'),
    fridge: int,
    state: oneOf(fridgeStates),
    since: instant,
  }).primaryKey('hub_id', 'fridge'),
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
