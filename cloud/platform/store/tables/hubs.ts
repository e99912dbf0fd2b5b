import { HubStatus } from '../../../../protocol/contract/owner-hubs.ts'
import { binUses, fridgeStates } from '../../../../protocol/mqtt/hub-entries.ts'
import { defineTable, flag, growing, id, instant, int, oneOf, real, text } from '../table.ts'

/** Values of a hub's setting `external_payments`. `customers` excludes anonymous users. */
export const externalPayments = ['off', 'customers', 'everyone'] as const
export type ExternalPayments = (typeof externalPayments)[number]

/** Hubs, their owners and their hardware. */
export const rolloutStates = ['running', 'paused', 'stopped', 'completed', 'aborted'] as const
export const rolloutHubStates = [
  'pending',
  'downloading',
  'waiting',
  'confirming',
  'succeeded',
  'rolled_back',
  'skipped',
] as const

export const hubTables = {
  owners: defineTable({ id, name: text, created_at: instant.fixed.default(0) }),
  hubs: defineTable({
    id,
    owner_id: int.references('owners'),
    /** When the present owner received it. 0 for the first owner. */
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
    /**
     * When it was retired. A retired hub has no sales and no alarms, and no login after `draining_until`. Its books
     * remain.
     */
    retired_at: instant.nullable,
    /**
     * Until then a retired hub may sign in, so that its streams are delivered. Null if they are, or if it is not
     * retired.
     */
    draining_until: instant.nullable,
    mqtt_password_digest: text,
    /** SHA-256 of the claim code that enrols a board; null if there is none. */
    claim_code_digest: text.nullable,
    claim_expires_at: instant.nullable,
    /**
     * When its certificate was revoked. The cloud then ignores the hub until it is enrolled again or has a new password.
     */
    revoked_at: instant.nullable,
    /** When the retired or revoked board reported that it has erased its secrets. */
    secrets_erased_at: instant.nullable,
    /** Former passwords that are still valid during an overlap (`FormerPassword`), as JSON; null without one. */
    former_passwords: text.nullable,
    /** Desired state, sent to the hub as `config`. */
    accepting_orders: flag,
    disabled_bins: text,
    disabled_fridges: text,
    /** JSON: when people last confirmed each fridge, as in the hub's configuration. Null if none is confirmed. */
    confirmed_fridges: text.nullable,
    /** Who may claim an order for an integrator's payment: nobody, users with an account, or guests too. */
    external_payments: oneOf(externalPayments).default('off'),
    /** Sales tax in thousandths of a percent: 8.875 % is 8875. */
    tax_millipercent: int.check('>= 0'),
    /**
     * Changes with the hub's products and with the data that finds them: names, categories, whether they are active. It
     * is random, so that a restored database never reuses a value.
     */
    catalogue_version: int.default(0),
    /** JSON: the operator's hardware description. It can be exported if a card is lost. */
    hardware: text.nullable,
    /** JSON: settings that the hub uses instead of those of its configuration file, by name. */
    desired_settings: text.default('{}'),
    /** Counts the changes of its settings and its hardware description. */
    desired_version: int.default(1),
    created_at: instant.fixed,
    /** The last day, at the hub, of which the morning mails were queued. */
    morning_mail_on: text.nullable,
  })
    .index('hubs_by_owner', ['owner_id'])
    .index('hubs_draining', ['draining_until'], 'draining_until is not null')
    .index('hubs_by_claim_code', ['claim_code_digest']),
  /** The cloud's own certificate authority (`enrolment/authority.ts`), and a former one during a rotation. */
  hub_authority: defineTable({
    id: int.primaryKey.fixed,
    /** PEM. */
    certificate: text,
    /** Its key (PKCS #8, PEM), sealed. */
    sealed_key: text,
    created_at: instant.fixed,
    /** The end of the overlap with its successor; null if nobody rotates it. */
    ends_at: instant.nullable,
  }),
  /** Certificates of hubs. A renewed one is valid beside its successor until its end. */
  hub_certificates: defineTable({
    /** Hexadecimal. */
    serial: text.primaryKey.fixed,
    hub_id: int.references('hubs').fixed,
    issued_at: instant.fixed,
    expires_at: instant.fixed,
    revoked_at: instant.nullable,
    /** The authority that signed it. */
    authority: int.fixed.default(1),
  })
    .index('hub_certificates_by_hub', ['hub_id'])
    .index('hub_certificates_by_end', ['expires_at']),
  /** People who may use the page of a hub, each with a PIN. The hub receives them with its configuration. */
  hub_people: defineTable({
    hub_id: int.references('hubs').fixed,
    name: text.fixed,
    /** `protocol/model/pin.ts`. */
    pin_digest: text,
    created_at: instant.fixed,
  }).primaryKey('hub_id', 'name'),
  /** Releases of the hub's service that rollouts give to hubs. */
  hub_updates: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    /** JSON: `DesiredRelease`; null if no rollout gives the hub a release. */
    desired: text.nullable,
    /** JSON: the latest `StoredReport` of the hub. */
    reported: text.nullable,
  }),
  rollouts: defineTable({
    /** UUIDv7. */
    id: text.primaryKey.fixed,
    version: text.fixed,
    /** `10%`, or a number of hubs: more failures in a wave stop the rollout. */
    failures: text.fixed,
    state: growing(rolloutStates),
    started_at: instant.fixed,
    ended_at: instant.nullable,
  }),
  rollout_hubs: defineTable({
    rollout_id: text.references('rollouts').fixed,
    hub_id: int.references('hubs').fixed,
    /** From 1. A hub that replaces the hubs of a wave without a success changes to that wave. */
    wave: int,
    state: growing(rolloutHubStates),
    error: text.nullable,
    /** When the hub got the release; null before its wave and after a withdrawal. */
    given_at: instant.nullable,
  }).primaryKey('rollout_id', 'hub_id'),
  /** A hub's former owners with their times. They keep the books of that time. */
  former_owners: defineTable({
    hub_id: int.references('hubs').fixed,
    owner_id: int.references('owners').fixed,
    since: instant.fixed,
    /** Exclusive. */
    until: instant.fixed,
  })
    .primaryKey('hub_id', 'until')
    .index('former_owners_by_owner', ['owner_id']),
  /** Moves of hubs to other cells (`gateway/moves.ts`), the last one of each hub. */
  hub_moves: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    /** The address of the other cell: `https://shop.example/c1`. */
    cloud: text,
    /** The number of the hub there. */
    next_id: int,
    /** Its claim code there, sealed, until the order ends. */
    code: text.nullable,
    ordered_at: instant,
    /** Why the hub did not move. */
    error: text.nullable,
    /** The hub is enrolled there, and retired here. */
    moved_at: instant.nullable,
  }),
  /** The last export of each hub for another cell (`operations/ownership/hub-entry.ts`). */
  hub_exports: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    /** The digest of its entry in the file. */
    digest: text,
  }),
  /** Hubs in service that came from another cell (`operations/ownership/owner-file.ts`). */
  imported_hubs: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    /** Its number there. */
    former_id: int.unique.fixed,
    /** The digest of its entry in the file. */
    digest: text.fixed,
    /** Everything of the file is in this cell; null while the import is unfinished. */
    imported_at: instant.nullable,
  }),
  /** Layout (O §2): the shelves of a hub's cabinets, and the number of their rows. The cloud owns it. */
  hub_shelves: defineTable({
    hub_id: int.references('hubs'),
    cabinet: int.check('between 1 and 4'),
    shelf: int.check('>= 1'),
    total_rows: int.check('>= 1'),
    /** Capacity of each row in units. */
    depth: int.check('>= 1'),
  }).primaryKey('hub_id', 'cabinet', 'shelf'),
  /** The fridges of a hub, and the cabinets behind their doors. */
  hub_fridges: defineTable({
    hub_id: int.references('hubs'),
    fridge: int.check('>= 1'),
    left_cabinet: int,
    middle_cabinet: int,
    right_cabinet: int,
  }).primaryKey('hub_id', 'fridge'),
  /**
   * Places that are blocked from sale, with the reason. Shelf and row 0: the whole cabinet. Only
   * `catalogue/units.ts` writes it: the owner's blocks from `hubs.disabled_fridges`, the hub's from its ledger.
   */
  blocked_places: defineTable({
    hub_id: int.references('hubs'),
    source: oneOf(['owner', 'hub']),
    cabinet: int,
    shelf: int,
    row: int,
    reason: text,
    since: instant,
  }).primaryKey('hub_id', 'cabinet', 'shelf', 'row', 'source'),
  /** The state of a hub's bins in its latest ledger. */
  hub_bins: defineTable({
    hub_id: int.references('hubs'),
    bin: int,
    /** Capacity in units. */
    capacity: int,
    state: oneOf(binUses),
    /** The order that occupies it, or left its goods in it. */
    order_uuid: text.nullable,
    fault: text.nullable,
    since: instant,
  }).primaryKey('hub_id', 'bin'),
  /** The state of a hub's fridges in its latest ledger. */
  hub_fridge_states: defineTable({
    hub_id: int.references('hubs'),
    fridge: int,
    state: oneOf(fridgeStates),
    since: instant,
  }).primaryKey('hub_id', 'fridge'),
  /** The address of a hub's management service, and its host key. */
  hub_management: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    host: text,
    port: int.check('between 1 and 65535'),
    /** `SHA256:…` */
    host_key: text,
  }),
  /**
   * Bins that are enabled and disabled over SSH. Inserted before the request to the hub, so that no outcome is lost.
   */
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
