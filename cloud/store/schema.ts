import type { ColumnType, Generated } from 'kysely'
import type { OrderStatus } from '../../protocol/model/order-status.ts'

/**
 * The tables, as Kysely sees them; the same on SQLite and PostgreSQL. Conventions: instants are milliseconds since the
 * Unix epoch, money is integer cents, flags are 0 or 1, JSON is text that its owner parses with a schema. Columns that no
 * statement may change once written are typed so.
 */
type Fixed<T> = ColumnType<T, T, never>
type Flag = 0 | 1
/** Milliseconds since the Unix epoch. */
type Instant = number

export interface Tables {
  owners: { id: Generated<number>; name: string }
  hubs: {
    id: Generated<number>
    owner_id: Fixed<number>
    name: string
    street_address_1: string
    street_address_2: string | null
    city: string
    state: string
    postal_code: string
    longitude: number
    latitude: number
    timezone: string
    /** active | paused | maintenance | inactive */
    hub_status: string
    mqtt_password_digest: string
    /** Desired state (contract §6), sent to the hub as `config`. */
    accepting_orders: Flag
    disabled_bins: string
    disabled_fridges: string
    /** Sales tax in hundredths of a percent. */
    tax_basis_points: number
    created_at: Fixed<Instant>
  }

  // Credentials.
  api_keys: {
    prefix: Fixed<string>
    digest: Fixed<string>
    name: Fixed<string>
    owner_id: Fixed<number>
    /** JSON array of scopes; never changes after issue (contract §3). */
    scopes: Fixed<string>
    /** JSON array of hub ids, or "*". */
    hubs: Fixed<string>
    created_at: Fixed<Instant>
    expires_at: Fixed<Instant | null>
    revoked_at: Instant | null
    last_used_at: Instant | null
  }
  roles: {
    id: Generated<number>
    identity: Fixed<string>
    role: Fixed<string>
    hubs: Fixed<string>
    created_at: Fixed<Instant>
  }
  idempotency_keys: {
    credential: Fixed<string>
    key: Fixed<string>
    fingerprint: Fixed<string>
    /** Null while the first request is under way. */
    status: number | null
    headers: string | null
    body: string | null
    locked_until: Instant
    created_at: Fixed<Instant>
  }
  /** Calls in the current minute, where several processes share a limit (contract §4). */
  rate_limits: { caller: string; route: string; minute: number; count: number }
  audit_log: {
    id: Generated<number>
    at: Fixed<Instant>
    actor: Fixed<string>
    action: Fixed<string>
    hub_id: Fixed<number | null>
    object: Fixed<string>
    result: Fixed<string>
    detail: Fixed<string>
  }

  // Catalogue and stock.
  categories: { id: Generated<number>; name: string; parent_id: number | null }
  products: {
    id: Generated<number>
    hub_id: Fixed<number>
    name: string
    upc: string
    description: string | null
    category_id: number
    subcategory_id: number | null
    original_price: number
    /** The product's own markdown, 0–99: `discounted_price` is what is left, rounded half up. */
    markdown_percent: number
    purchase_price: number
    image_url: string
    is_bestseller: Flag
    is_active: Flag
    cabinet: number
    shelf: number
    row: number
    /** On the shelf, as the hub's ledger last said (I5). */
    quantity: number
    /** Promised to orders in PENDING_PAYMENT to PREPARING and not yet dropped. Never above `quantity` when promised. */
    reserved: number
  }
  facings: {
    hub_id: number
    cabinet: number
    shelf: number
    row: number
    product_id: number
    is_primary: Flag
    quantity: number
  }
  /** Append-only mirror of the hub's stock ledger. */
  stock_ledger: {
    id: Generated<number>
    hub_id: Fixed<number>
    product_id: Fixed<number>
    cabinet: Fixed<number>
    shelf: Fixed<number>
    row: Fixed<number>
    /** dropped | counted | restocked | snapshot */
    kind: Fixed<string>
    delta: Fixed<number>
    /** Operation, count or restock id: unique per hub, so that a hub with a new store doubles nothing. */
    cause_id: Fixed<string>
    order_id: Fixed<number | null>
    item_id: Fixed<number | null>
    at: Fixed<Instant>
  }
  /** Operations whose outcome the hub could not learn (I1). */
  unknown_operations: {
    hub_id: Fixed<number>
    operation_id: Fixed<string>
    device: Fixed<string>
    action: Fixed<string>
    reason: Fixed<string>
    order_id: Fixed<number | null>
    item_id: Fixed<number | null>
    product_id: Fixed<number | null>
    at: Fixed<Instant>
    settled_at: Instant | null
    settled_by: string | null
    happened: Flag | null
  }

  // People and orders.
  users: {
    id: Generated<number>
    /** The identity provider's `sub`. */
    identity: string | null
    is_anonymous: Flag
    email: string | null
    phone_number: string | null
    first_name: string | null
    last_name: string | null
    profile_image_url: string | null
    selected_hub_id: number | null
    default_hub_id: number | null
    created_at: Fixed<Instant>
    updated_at: Instant
  }
  orders: {
    id: Generated<number>
    user_id: number
    hub_id: Fixed<number>
    processing_status: OrderStatus
    /** Derived by `payments/payment-status.ts` from payments and refunds, and by nothing else (I6). */
    payment_status: string
    currency: Fixed<string>
    /** Frozen at checkout; null in a cart, whose prices are the products'. */
    total_price_original: number | null
    total_price_discounted: number | null
    tax_total: number | null
    total: number | null
    version: number
    /** Reserved by an integrator's claim (contract §5), else null. */
    reserved_bin: number | null
    open_when_ready: Flag
    /** JSON array of bin numbers, as the hub reports them (the reserved bin before that). */
    bins: string
    /** `QueuedOrder` as it was sent to the hub, or null. */
    queued_order: string | null
    failure_reason: string | null
    created_at: Fixed<Instant>
    updated_at: Instant
    queued_at: Instant | null
    preparing_at: Instant | null
    ready_at: Instant | null
    finished_at: Instant | null
  }
  order_items: {
    id: Generated<number>
    order_id: number
    product_id: Fixed<number>
    qty: number
    /** Frozen at checkout with the totals; null before. Per unit, cents. */
    upc: string | null
    name: string | null
    image_url: string | null
    unit_price_original: number | null
    unit_price: number | null
    purchase_price: number | null
    /** The line's net share after discounts, without and with its tax: refunds take from these and never re-prorate. */
    net: number | null
    tax: number | null
    /** Units still promised by `products.reserved`. */
    reserved: number
    qty_dropped: number
    qty_doubtful: number
    refunded_quantity: number
    bins: string
  }
  payments: {
    id: Generated<number>
    order_id: Fixed<number>
    user_id: Fixed<number>
    /** sandbox | external | wallet | none (a zero total) */
    processor: Fixed<string>
    /** The processor's id of it, once known. */
    processor_ref: string | null
    method: Fixed<string>
    amount: Fixed<number>
    /** pending | requires_action | authorized | completed | failed | canceled */
    status: string
    decline_code: string | null
    client_secret: string | null
    confirmed_by_key: string | null
    /** The order could not take the money any more: it goes back. */
    is_late: Flag
    created_at: Fixed<Instant>
    updated_at: Instant
  }
  refunds: {
    id: Generated<number>
    order_id: Fixed<number>
    payment_id: Fixed<number>
    /** The line it is for, or null for an amount of the whole order. */
    item_id: Fixed<number | null>
    quantity: Fixed<number>
    /** Includes the share's tax. */
    amount: Fixed<number>
    tax: Fixed<number>
    /** customer | short | timed_out | failed | cancelled | late_payment */
    reason: Fixed<string>
    /** pending | succeeded | failed */
    status: string
    processor_ref: string | null
    failure_reason: string | null
    created_at: Fixed<Instant>
    updated_at: Instant
  }
  /** Events of the card processor, each applied in the transaction that inserts it here (I3). */
  processor_events: { id: Fixed<string>; type: Fixed<string>; received_at: Fixed<Instant> }
  /** The sandbox processor's own books: another party's, written in transactions of its own. */
  sandbox_intents: {
    id: Fixed<string>
    idempotency_key: Fixed<string>
    amount: Fixed<number>
    refunded: number
    method: Fixed<string>
    status: string
    decline_code: string | null
    client_secret: Fixed<string>
    metadata: Fixed<string>
    created_at: Fixed<Instant>
  }
  sandbox_refunds: {
    id: Fixed<string>
    idempotency_key: Fixed<string>
    intent_id: Fixed<string>
    amount: Fixed<number>
    status: Fixed<string>
    failure_reason: Fixed<string | null>
    created_at: Fixed<Instant>
  }
  sandbox_events: {
    id: Fixed<string>
    body: Fixed<string>
    delivered_at: Instant | null
    attempts: number
    due_at: Instant
    created_at: Fixed<Instant>
  }

  // Hubs over MQTT.
  hub_sessions: {
    hub_id: number
    session: string
    /** The cloud process that speaks for the cloud to this hub, until the lease ends. */
    process_id: string
    lease_until: Instant
    is_connected: Flag
    last_heard_at: Instant
    /** `HubHealth`, or null before the first heartbeat. */
    health: string | null
    health_at: Instant | null
    software: string
  }
  /** Receivers of hubs' streams. A new epoch adds a row and keeps the old one. */
  hub_streams: {
    hub_id: Fixed<number>
    /** ledger | telemetry */
    stream: Fixed<string>
    epoch: Fixed<string>
    cursor: number
    tag: number
    is_current: Flag
    created_at: Fixed<Instant>
  }
  /** Senders to hubs. */
  hub_outboxes: { hub_id: number; epoch: string; base: number; base_tag: number; last: number }
  hub_outbox_entries: {
    hub_id: Fixed<number>
    epoch: Fixed<string>
    seq: Fixed<number>
    tag: Fixed<number>
    body: Fixed<string>
  }
  dead_letters: {
    id: Generated<number>
    hub_id: Fixed<number>
    stream: Fixed<string>
    epoch: Fixed<string>
    seq: Fixed<number>
    body: Fixed<string>
    error: Fixed<string>
    at: Fixed<Instant>
  }
  commands: {
    id: Fixed<string>
    hub_id: Fixed<number>
    session: Fixed<string>
    body: Fixed<string>
    /** sent | executed | refused | failed | unknown */
    state: string
    reason: string | null
    data: string | null
    actor: Fixed<string>
    created_at: Fixed<Instant>
    finished_at: Instant | null
  }
  telemetry: {
    hub_id: Fixed<number>
    epoch: Fixed<string>
    seq: Fixed<number>
    fridge_number: Fixed<number>
    celsius: Fixed<number>
    at: Fixed<Instant>
  }
  alarms: {
    id: Generated<number>
    hub_id: Fixed<number>
    code: Fixed<string>
    device: Fixed<string>
    raised: Fixed<Flag>
    detail: Fixed<string>
    at: Fixed<Instant>
  }
}
