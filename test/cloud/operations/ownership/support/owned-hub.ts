import { OrderStatus } from '../../../../../protocol/model/order-status.ts'
import { analyticsHandlers } from '../../../../../cloud/commerce/analytics/reports.ts'
import { dealHandlers } from '../../../../../cloud/commerce/deals/handlers.ts'
import { facingHandlers } from '../../../../../cloud/commerce/catalogue/facings.ts'
import { inventoryHandlers } from '../../../../../cloud/commerce/catalogue/inventory.ts'
import { configurationHandlers } from '../../../../../cloud/operations/controls/configuration.ts'
import { ownerOrderHandlers } from '../../../../../cloud/commerce/orders/handlers.ts'
import { refundHandlers } from '../../../../../cloud/commerce/refunds/handlers.ts'
import { fleetHandlers } from '../../../../../cloud/operations/reports/fleet.ts'
import { alarmHandlers } from '../../../../../cloud/operations/alarms/handlers.ts'
import { grantRole } from '../../../../../cloud/platform/credentials/roles.ts'
import { moveHub, retireHub } from '../../../../../cloud/operations/ownership/hand-over.ts'
import { temperatureHandlers } from '../../../../../cloud/operations/hubs/temperatures.ts'
import { maintenanceHandlers } from '../../../../../cloud/operations/maintenance/reports.ts'
import { openCloud, type CallOptions } from '../../../../world/cloud.ts'
import { type OpenDatabase } from '../../../../world/database.ts'
import { openShop, type Shop } from '../../../../world/shop.ts'

export type Caller = Pick<CallOptions, 'key' | 'token'>

/** The callers of a moved hub's new owner: the owner's key, or a person with a role at the hub. */
export const newcomers = ['key', 'person'] as const
export type Newcomer = (typeof newcomers)[number]

/**
 * Hub 1 of owner 1 with a shop, and the API. `one` is the key of owner 1, `two` the credential of owner 2: a key, or the
 * token of a person who gets a role at the hub after its move.
 */
export async function openHub(open: OpenDatabase, newcomer: Newcomer = 'key') {
  const db = await open()
  let shop: Shop | undefined
  // The interface creates the hub, and the shop the dependencies of refunds.
  const late = {
    get processor() {
      return shop!.services.processor
    },
    get commands() {
      return shop!.services.commands
    },
  }
  const app = await openCloud({
    db,
    settings: { grantsKeptMs: 0 },
    handlersOf: (context, media) => ({
      ...refundHandlers(Object.assign(late, { context })),
      ...ownerOrderHandlers(context, media),
      ...analyticsHandlers(context, media),
      ...temperatureHandlers(context),
      ...alarmHandlers(context),
      ...fleetHandlers(context),
      ...maintenanceHandlers(context, media),
      ...dealHandlers(context, media),
      ...facingHandlers(context),
      ...inventoryHandlers(context, media),
      // The handlers of desired state need no commands.
      ...configurationHandlers({ context, commands: undefined as never }),
    }),
  })
  shop = await openShop(db, { products: [{ price: 250, quantity: 50 }] })
  const { context } = shop
  const scopes = [
    'orders:read',
    'orders:write',
    'analytics:read',
    'hubs:read',
    'maintenance:read',
    'promotions:read',
    'promotions:write',
    'controls:write',
    'inventory:write',
  ] as const
  const one = { key: await app.key([...scopes], { ownerId: 1 }) }
  const two =
    newcomer === 'key'
      ? { key: await app.key([...scopes], { ownerId: 2 }) }
      : { token: await app.issuer.token({ sub: 'nina' }) }
  const call = async (caller: Caller, path: string, method = 'GET', body?: unknown) => {
    const answer = await app.call(method, `/api/v1/owners/${path}`, {
      ...caller,
      ...(body !== undefined && { body }),
    })
    return { status: answer.status, json: answer.json as Record<string, unknown> }
  }
  return {
    app,
    db,
    shop,
    context,
    one,
    two,
    call,
    move: async (newOwner: number) => {
      const moved = await db.transact((tx) => moveHub(tx, context, { hubId: 1, newOwner }))
      if (newcomer === 'person' && newOwner === 2)
        await grantRole(db.kysely, context.runtime, { identity: 'nina', role: 'owner', hubs: [1] })
      return moved
    },
    retire: (force = false) =>
      db.transact((tx) => retireHub(tx, context, { hubId: 1, force, actor: 'command line' })),
    orders: async (caller: Caller) =>
      ((await call(caller, 'hubs/all_orders_paginated/?hub_id=1')).json['data'] as { id: number }[]).map(
        ({ id }) => id,
      ),
    figures: async (caller: Caller) => (await call(caller, 'total_orders/?hub_id=1')).json['total_orders'],
    /** Sells one unit, which the hub delivers. */
    sell: async (quantity = 1): Promise<number> => {
      const { id } = await shop.paidOrder({ 1: quantity })
      await finish(shop, id)
      shop.clock.advance(1000)
      return id
    },
  }
}

export async function finish({ context }: Shop, id: number): Promise<void> {
  await context.db.kysely
    .updateTable('orders')
    .set({ processing_status: OrderStatus.COMPLETED, finished_at: context.runtime.clock.now() })
    .where('id', '=', id)
    .execute()
}
