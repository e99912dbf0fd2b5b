import { insertLayout } from '../../../cloud/demo/hub-data.ts'
import { type RoutedCommand, routedCommands } from '../../../protocol/contract/command-route.ts'
import { commandRow } from '../../../protocol/model/hub-commands.ts'
import { answerLogs } from '../../world/hub-log.ts'
import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

type Query = NonNullable<Call['query']>

const built = async ({ shop }: World): Promise<void> => {
  await shop.context.db.transact((tx) => insertLayout(tx, 1, undefined))
}

/** A call of hub 1, which has a layout. */
const atHub1 =
  (query: Query = {}) =>
  async (world: World): Promise<Call> => {
    await built(world)
    return { as: 'owner', query: { hub_id: 1, ...query } }
  }

const control =
  (query: Query, isConnected: boolean) =>
  async (world: World): Promise<Call> => {
    await built(world)
    if (isConnected) await world.connectHub()
    return { as: 'owner', query: { hub: 1, ...query } }
  }

/** An actuation: executed by an online hub, refused at once for an offline one. */
const actuation = (query: Query): RouteCases => ({
  success: control(query, true),
  errors: {
    hardware_error: control(query, false),
    ...('bin' in query && { bin_not_found: withoutBins(query) }),
    ...('row' in query && { invalid_location: control({ ...query, shelf: 99 }, true) }),
    ...('fridge' in query && { fridge_not_found: control({ ...query, fridge: 9 }, true) }),
  },
})

/** A hub without any bin. */
const withoutBins =
  (query: Query) =>
  async (world: World): Promise<Call> => {
    await world.shop.hear({ bins: [] })
    return { as: 'owner', query: { hub: 1, ...query } }
  }

/** A call of each route that follows from its command's row. */
const actuations = Object.fromEntries(
  routedCommands.map((name) => {
    const { bin, fridge, location } = commandRow(name).parameters
    const place = location && { cabinet: 1, shelf: 1, row: 1 }
    return [
      `owner.controls.${name}`,
      actuation({ ...(bin && { bin: 1 }), ...(fridge && { fridge: 1 }), ...place }),
    ]
  }),
) as Record<`owner.controls.${RoutedCommand}`, RouteCases>

const ofBin = { success: control({ bin: 1 }, false), errors: { bin_not_found: withoutBins({ bin: 1 }) } }
const ofFridge = {
  success: control({ fridge: 1 }, false),
  errors: { fridge_not_found: control({ fridge: 9 }, false) },
}

const product = (body: Record<string, unknown>, errors: RouteCases['errors'] = {}): RouteCases => ({
  success: () => Promise.resolve({ as: 'owner', params: { product_id: 1 }, body }),
  errors: {
    product_not_found: () => Promise.resolve({ as: 'other-owner', params: { product_id: 1 }, body }),
    ...errors,
  },
})
const upc = '036000291452'

const counted =
  (row: Record<string, number> = {}, as: Call['as'] = 'owner') =>
  async (world: World): Promise<Call> => {
    await built(world)
    return { as, body: { hub_id: 1, cabinet: 1, shelf: 1, row: 1, quantity: 3, ...row } }
  }

/** An operation of hub 1 with unknown outcome, which `settled` resolves as happened. */
const doubtful =
  (call: Partial<Call>, { isConnected = true, settled }: { isConnected?: boolean; settled?: boolean } = {}) =>
  async (world: World): Promise<Call> => {
    const { shop } = world
    const operation_id = '01990000-0000-7000-8000-000000000077'
    const { id: order_id } = await shop.paidOrder({ 1: 1 })
    const [item] = await shop.items(order_id)
    await shop.report({
      kind: 'operation.unknown',
      operation_id,
      device: 'cabinet-1',
      action: 'dispense',
      reason: 'no_drop',
      started_at: shop.clock.now(),
      location: { cabinet: 1, shelf: 1, row: 1 },
      order_id,
      line_id: item!.id,
      product_id: 1,
    })
    if (settled !== undefined)
      await shop.report({ kind: 'operation.settled', operation_id, by: 'count', happened: settled })
    if (isConnected) await world.connectHub()
    return { as: 'owner', params: { operation_id }, ...call }
  }
const happened = { body: { happened: true } }

/** O §4.1, §4.2 and §4.6, except calls over SSH. */
export const hubCases = {
  'owner.hubs.ids': { success: () => Promise.resolve({ as: 'owner' }) },
  'owner.hubs.info': { success: atHub1() },
  'owner.hubs.layout': { success: atHub1() },
  'owner.hubs.bins': { success: atHub1() },
  'owner.hubs.logs': {
    async success(world) {
      await world.connectHub()
      const { context, clock } = world.shop
      const line = {
        at: '2026-11-20T14:30:00.000Z',
        level: 'info',
        message: 'the hub has started',
        orders: 3,
      }
      // The clock of the test moves the waiting call.
      answerLogs(context, [line], () => clock.advance(250))
      return atHub1({ minutes: 10 })(world)
    },
    errors: { hardware_error: atHub1() },
  },
  'owner.hubs.door_status': { success: atHub1() },
  'owner.hubs.fridge_map': { success: atHub1() },
  'owner.hubs.temperatures': {
    success: atHub1({ fridge: 1 }),
    errors: { fridge_not_found: atHub1({ fridge: 99 }) },
  },
  'owner.hubs.request_door_open': {
    async success(world) {
      await world.connectHub()
      return atHub1()(world)
    },
    errors: {
      hardware_error: atHub1(),
      async order_in_progress(world) {
        await world.shop.paidOrder({ 1: 1 })
        return atHub1()(world)
      },
    },
  },
  'owner.inventory.lookup': {
    success: atHub1({ cabinet: 1, shelf: 1, row: 1 }),
    errors: {
      product_not_found: atHub1({ cabinet: 4, shelf: 1, row: 1 }),
      invalid_location: atHub1({ cabinet: 4, shelf: 6, row: 1 }),
    },
  },
  'owner.facings.list': { success: atHub1() },
  'owner.facings.count': {
    success: counted(),
    errors: {
      hub_not_found: counted({ hub_id: 99 }),
      hub_access_denied: counted({ hub_id: 2 }, 'limited'),
      product_not_found: counted({ cabinet: 4 }),
      invalid_location: counted({ shelf: 6 }),
      invalid_quantity: counted({ quantity: 100 }),
    },
  },
  'owner.inventory.update_quantity': product({ quantity: 3 }),
  'owner.inventory.update_price': product({ price: 3 }),
  'owner.inventory.update_purchase_price': product({ purchase_price: 3 }),
  'owner.inventory.update_upc': product(
    { upc },
    {
      async duplicate_upc(world) {
        await world.owner('PUT', 'product/2/update_upc', { upc })
        return { as: 'owner', params: { product_id: 1 }, body: { upc } }
      },
    },
  ),
  ...actuations,
  'owner.controls.open_bin': {
    ...actuation({ bin: 1 }),
    errors: {
      ...actuation({ bin: 1 }).errors,
      order_state_conflict: control({ bin: 1, order_id: 999 }, true),
    },
  },
  'owner.controls.cycle_bin': actuation({ bin: 1, num_cycles: 2 }),
  'owner.controls.get_bin_status': {
    success: control({ bin: 1 }, true),
    errors: { bin_not_found: withoutBins({ bin: 1 }) },
    elsewhere: { hardware_error: 'test/cloud/operations/controls/controls.test.ts' },
  },
  'owner.controls.enable_bin': ofBin,
  'owner.controls.disable_bin': ofBin,
  'owner.controls.toggle_bin': ofBin,
  'owner.controls.open_fridge_left': actuation({ fridge: 1 }),
  'owner.controls.open_fridge_right': actuation({ fridge: 1 }),
  'owner.controls.open_fridge_middle': actuation({ fridge: 1 }),
  'owner.controls.enable_fridge': ofFridge,
  'owner.controls.disable_fridge': ofFridge,
  'owner.operations.list': {
    success: doubtful({ params: {}, query: { hub_id: 1, state: 'unknown' } }),
    errors: { invalid_cursor: doubtful({ params: {}, query: { cursor: 'unknown' } }) },
  },
  'owner.operations.settle': {
    success: doubtful(happened),
    errors: {
      // Another owner's operation is not found either.
      operation_not_found: doubtful({ ...happened, as: 'other-owner' }),
      operation_settled: doubtful(happened, { settled: false }),
      hardware_error: doubtful(happened, { isConnected: false }),
    },
  },
  'owner.controls.stop_orders': { success: control({}, false) },
  'owner.controls.resume_orders': { success: control({}, false) },
} satisfies Record<string, RouteCases>
