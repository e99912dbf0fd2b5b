import { configurationHandlers } from '../../cloud/operations/controls/configuration.ts'
import { controlHandlers } from '../../cloud/operations/controls/handlers.ts'
import { operationHandlers } from '../../cloud/operations/controls/unknown-operations.ts'
import { alarmHandlers } from '../../cloud/operations/alarms/handlers.ts'
import { facingHandlers } from '../../cloud/commerce/catalogue/facings.ts'
import { inventoryHandlers } from '../../cloud/commerce/catalogue/inventory.ts'
import { insertLayout } from '../../cloud/demo/hub-data.ts'
import { hubDomain } from '../../cloud/hub-domain.ts'
import { Gateway } from '../../cloud/gateway/gateway.ts'
import { doorHandlers } from '../../cloud/operations/doors/handlers.ts'
import { hubHandlers } from '../../cloud/operations/hubs/hubs.ts'
import { createOrder, setItem } from '../../cloud/commerce/orders/cart.ts'
import { pay } from '../../cloud/commerce/payments/pay.ts'
import { createSandbox } from '../../cloud/commerce/processors/sandbox/sandbox.ts'
import type { CommerceServices } from '../../cloud/commerce/services.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { scopes } from '../../protocol/model/scopes.ts'
import type { FaultType } from '../../simulator/faults/fault-types.ts'
import type { Act } from '../../simulator/physics/world-state.ts'
import { openCloud, type CallAnswer, type TestCloud } from './cloud.ts'
import { emptySqlite } from './database.ts'
import { seededChance } from '../simulation/chance.ts'
import { insertAssortment } from '../simulation/cloud-books.ts'
import { Coverage } from '../simulation/coverage.ts'
import { CrashPoints } from '../simulation/crash-points.ts'
import { simulatedHardware } from '../simulation/hardware.ts'
import { HubNode } from '../simulation/hub-node.ts'
import { Network } from '../simulation/network.ts'
import { Room } from '../simulation/room.ts'
import { Scheduler } from '../simulation/scheduler.ts'
import { testContext } from './context.ts'

const HUB = 1

/**
 * The owner's HTTP interface, the gateway, a broker, the real hub core and the simulated hardware, in one
 * process and one virtual time. Tests compare each answer with the simulator's own log.
 */
export class Plant {
  readonly network: Network
  readonly room: Room
  readonly hub: HubNode
  readonly db: CloudDatabase
  readonly services: CommerceServices
  readonly #scheduler: Scheduler
  readonly #app: TestCloud
  readonly #key: string
  #users = 0

  /** A plant with a connected, welcomed hub that knows its controllers. */
  static async open(): Promise<Plant> {
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
    const scheduler = new Scheduler()
    const network = new Network(scheduler, seededChance(11))
    const room = new Room(scheduler, seededChance(12))
    const life = scheduler.newLife('cloud', () => {})
    const runtime = { clock: scheduler.clock(life, () => 0), random: seededChance(13) }
    const context = testContext(db, runtime, { onFault: (error) => scheduler.report(error, life) })
    const openTransport = network.transportFor('cloud', life)
    const gateway = new Gateway({
      domain: hubDomain(),
      context,
      broker: { kind: 'own', open: openTransport },
      processId: 'cloud-1',
    })
    const services = { context, processor: createSandbox({ db, runtime }), commands: gateway.commands }
    const app = await openCloud({
      db,
      handlersOf: (_context, media) => ({
        ...hubHandlers(context),
        ...doorHandlers(services),
        ...controlHandlers(services),
        ...configurationHandlers(services),
        ...operationHandlers(services),
        ...alarmHandlers(context),
        ...facingHandlers(context),
        ...inventoryHandlers(context, media),
      }),
    })
    await insertAssortment(db.kysely)
    await db.transact((tx) => insertLayout(tx, HUB, simulatedHardware))
    const hub = hubNode({ scheduler, network, room })
    const plant = new Plant({
      scheduler,
      network,
      room,
      hub,
      db,
      services,
      app,
      key: await app.key([...scopes]),
    })
    gateway.start()
    hub.start()
    await plant.run(6000)
    return plant
  }

  private constructor(parts: {
    scheduler: Scheduler
    network: Network
    room: Room
    hub: HubNode
    db: CloudDatabase
    services: CommerceServices
    app: TestCloud
    key: string
  }) {
    this.#scheduler = parts.scheduler
    this.network = parts.network
    this.room = parts.room
    this.hub = parts.hub
    this.db = parts.db
    this.services = parts.services
    this.#app = parts.app
    this.#key = parts.key
  }

  /** Lets virtual time pass. */
  async run(ms: number): Promise<void> {
    await this.#scheduler.run(this.#scheduler.time + ms)
    if (this.#scheduler.failure !== undefined) throw this.#scheduler.failure
  }

  /** Milliseconds of virtual time. */
  get time(): number {
    return this.#scheduler.time
  }

  /** Waits for a promise in virtual time. */
  async wait<T>(work: Promise<T>, atMostMs = 200_000): Promise<T> {
    let isSettled = false
    const settle = (): void => void (isSettled = true)
    work.then(settle, settle)
    await this.#scheduler.run(this.#scheduler.time + atMostMs, () => isSettled)
    if (this.#scheduler.failure !== undefined) throw this.#scheduler.failure
    if (!isSettled) throw new Error(`no answer within ${atMostMs} ms`)
    return work
  }

  /** A call below `/api/v1/owners/`, as an owner with every scope. */
  call(method: string, path: string, options: { headers?: Record<string, string>; body?: unknown } = {}) {
    return this.wait(this.begin(method, path, options))
  }

  /** Starts a call without waiting, for simultaneous calls. */
  begin(method: string, path: string, options: { headers?: Record<string, string>; body?: unknown } = {}) {
    return this.#app.call(method, `/api/v1/owners/${path}`, { key: this.#key, ...options })
  }

  /** `POST controls/<name>?hub=1&<query>` */
  control(name: string, query = ''): Promise<CallAnswer> {
    return this.call('POST', `controls/${name}?hub=${HUB}${query && `&${query}`}`)
  }

  /** Raises a fault that occurs on every occasion until it is cleared. */
  fault(type: FaultType, target: string): void {
    this.room.hub.faults.raise({ type, target, probability: 1 })
  }

  /** Starts another board with a copy of the hub's card and no devices. */
  startCopy(): HubNode {
    const room = new Room(this.#scheduler, seededChance(16))
    room.hub.power('off')
    const card = this.hub.card()!
    const copy = hubNode({ scheduler: this.#scheduler, network: this.network, room, card })
    copy.start()
    return copy
  }

  /** Cuts the hub's line to the broker, or restores it. The hub's will informs the cloud. */
  async cutHub(severed: boolean): Promise<void> {
    this.network.severe(this.hub.name, severed)
    await this.run(severed ? 100 : 30_000)
  }

  /** The simulator's log of physical acts during `work`. */
  async observe<T>(work: () => Promise<T>): Promise<{ value: T; acts: Act[] }> {
    const before = this.room.hub.actuations().length
    const value = await work()
    return { value, acts: this.room.hub.actuations(before) }
  }

  /** A customer's paid order, on its way to the hub. */
  async order(products: Record<number, number>, method = 'pm_card_visa'): Promise<number> {
    const user = await this.#newUser()
    const { services } = this
    const { context } = services
    const order = await this.wait(createOrder(context, { userId: user, hubId: HUB }))
    const key = { userId: user, orderId: order.id, hubId: HUB }
    for (const [productId, quantity] of Object.entries(products))
      await this.wait(setItem(context, key, { productId: Number(productId), quantity }))
    await this.wait(pay(services, { userId: user, orderId: order.id, method }))
    return order.id
  }

  async #newUser(): Promise<number> {
    this.#users++
    const { id } = await this.db.kysely
      .insertInto('users')
      .values({
        identity: `customer-${this.#users}`,
        is_anonymous: 1,
        created_at: 0,
        updated_at: 0,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    return id
  }

  statusOf(orderId: number): Promise<number> {
    return this.db.kysely
      .selectFrom('orders')
      .select('processing_status')
      .where('id', '=', orderId)
      .executeTakeFirstOrThrow()
      .then((order) => order.processing_status)
  }

  /** Runs until an order has reached or passed a status. */
  async until(orderId: number, status: number, atMostMs = 300_000): Promise<void> {
    const end = this.time + atMostMs
    while (this.time < end && (await this.statusOf(orderId)) < status) await this.run(100)
  }

  /** The newest record of the audit log, which may be written a moment after the answer. */
  async lastAudit() {
    await this.run(1000)
    const row = await this.db.kysely
      .selectFrom('audit_log')
      .selectAll()
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow()
    return { ...row, detail: JSON.parse(row.detail) as Record<string, unknown> }
  }
}

function hubNode(parts: { scheduler: Scheduler; network: Network; room: Room; card?: Buffer }): HubNode {
  const coverage = new Coverage()
  const crashPoints = new CrashPoints('hub', seededChance(14), coverage, 1)
  crashPoints.armed = false
  return new HubNode({ ...parts, chance: seededChance(15), coverage, crashPoints })
}
