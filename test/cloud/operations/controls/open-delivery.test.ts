import { beforeEach, expect, test } from 'vitest'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { deliveryHandlers } from '../../../../cloud/operations/controls/open-delivery.ts'
import type { CommandOutcome, Commands } from '../../../../cloud/gateway/commands.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import { openCloud, type CallAnswer, type TestCloud } from '../../../world/cloud.ts'
import { emptySqlite } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'

const COMMAND = '01900000-0000-7000-8000-000000000001'

let app: TestCloud
let shop: Shop
let token: string
let userId: number
let orderId: number

beforeEach(async () => {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const commands: Commands = { send: (request) => shop.services.commands.send(request) }
  app = await openCloud({ db, handlersOf: (context) => deliveryHandlers({ context, commands }) })
  shop = await openShop(db)
  const order = await shop.paidOrder({ 1: 1 })
  ;[userId, orderId] = [order.user_id, order.id]
  await db.kysely.updateTable('users').set({ identity: 'anna' }).where('id', '=', userId).execute()
  token = await app.issuer.token({ sub: 'anna' })
  await become(OrderStatus.READY)
})

const become = (processing_status: OrderStatus, bins = '[1,3]') =>
  app.context.db.kysely
    .updateTable('orders')
    .set({ processing_status, bins })
    .where('id', '=', orderId)
    .execute()

const open = (query = 'hub_id=1'): Promise<CallAnswer> =>
  app.call('POST', `/users/${userId}/orders/${orderId}/open-delivery?${query}`, { token })

const results = (...bins: [number, string | null][]) =>
  bins.map(([bin_number, error]) => ({ bin_number, success: error === null, error }))

test('a call without bins opens all bins of the order', async () => {
  shop.answer({
    kind: 'executed',
    commandId: COMMAND,
    durationMs: 1,
    data: { results: results([1, null], [3, null]) },
  })
  expect(await open()).toMatchObject({
    status: 200,
    json: { success: true, order_id: orderId, results: results([1, null], [3, null]) },
  })
  expect(shop.commands).toMatchObject([
    { hubId: 1, body: { name: 'open_delivery', bins: [1, 3] }, object: `order-${orderId}` },
  ])
})

test.each([
  { query: 'hub_id=1&bin_num=3', bins: [3] },
  { query: 'hub_id=1&bin_nums=3,1', bins: [3, 1] },
  { query: 'hub_id=1&bin_nums=1,3&bin_num=3', bins: [1, 3] },
])('a call with $query opens bins $bins', async ({ query, bins }) => {
  shop.answer({ kind: 'executed', commandId: COMMAND, durationMs: 1, data: {} })
  expect((await open(query)).json).toMatchObject({ success: true })
  expect(shop.commands[0]!.body).toMatchObject({ bins })
})

test('bins that did not open are listed one by one, and success means that all opened', async () => {
  const data = { results: results([1, null], [3, 'fault']) }
  for (const outcome of [
    { kind: 'executed', commandId: COMMAND, durationMs: 1, data },
    { kind: 'failed', commandId: COMMAND, reason: 'fault', data },
  ] satisfies CommandOutcome[]) {
    shop.answer(outcome)
    expect(await open()).toMatchObject({ status: 200, json: { success: false, ...data } })
  }
})

test.each([
  { outcome: { kind: 'offline' } as const, status: 503, code: 'hub_offline' },
  { outcome: { kind: 'timeout', commandId: COMMAND } as const, status: 504, code: 'hardware_error' },
  { outcome: { kind: 'refused', reason: 'too_late' } as const, status: 409, code: 'order_not_ready' },
  { outcome: { kind: 'refused', reason: 'interlock' } as const, status: 409, code: 'order_state_conflict' },
  {
    // A busy board refused the motion.
    outcome: { kind: 'failed', reason: 'interlock', data: { results: results([1, 'interlock']) } } as const,
    status: 409,
    code: 'order_state_conflict',
  },
  { outcome: { kind: 'failed', reason: 'nack' } as const, status: 502, code: 'hardware_error' },
])('the outcome $outcome.kind (reason: $outcome.reason) is $status $code', async (row) => {
  shop.answer({ commandId: COMMAND, data: null, ...row.outcome })
  expect(await open()).toMatchObject({ status: row.status, json: { error: { code: row.code } } })
})

test.each([OrderStatus.QUEUED, OrderStatus.PREPARING, OrderStatus.COMPLETED, OrderStatus.FAILED])(
  'an order in status %i is not ready, and no command is sent',
  async (status) => {
    await become(status)
    expect(await open()).toMatchObject({ status: 409, json: { error: { code: 'order_not_ready' } } })
    expect(shop.commands).toEqual([])
  },
)

test('a customer may open the bins again while collecting', async () => {
  await become(OrderStatus.COLLECTING)
  shop.answer({ kind: 'executed', commandId: COMMAND, durationMs: 1, data: {} })
  expect((await open()).status).toBe(200)
})

test.each([
  ['hub_id=1&bin_num=2', [2]],
  ['hub_id=1&bin_nums=1,4', [4]],
  ['hub_id=1&bin_nums=2,2&bin_num=2', [2]],
  ['hub_id=1&bin_num=99', [99]],
  ['hub_id=1&bin_num=0&bin_nums=7,1', [7, 0]],
])('a call with %s is 422, and lists each bin of another order once', async (query, bins) => {
  expect(await open(query)).toMatchObject({
    status: 422,
    json: { error: { code: 'bin_not_in_order', details: { bins } } },
  })
  expect(shop.commands).toEqual([])
})

test.each(['hub_id=1&bin_num=a', 'hub_id=1&bin_nums=1,,3', 'hub_id=1&bin_nums=a', ''])(
  'the bin list "%s" is 422 before any lookup',
  async (query) => {
    expect(await open(query)).toMatchObject({ status: 422, json: { error: { code: 'validation_error' } } })
  },
)

test('an order of another hub or another customer is not found', async () => {
  expect(await open('hub_id=2')).toMatchObject({ status: 404, json: { error: { code: 'order_not_found' } } })
  const other = await shop.paidOrder({ 1: 1 })
  orderId = other.id
  expect(await open()).toMatchObject({ status: 404, json: { error: { code: 'order_not_found' } } })
  expect(shop.commands).toEqual([])
})
