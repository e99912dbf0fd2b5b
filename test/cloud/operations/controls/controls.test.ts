import { beforeEach, describe, expect, test } from 'vitest'
import type { CommandOutcome, Commands } from '../../../../cloud/gateway/commands.ts'
import { controlHandlers } from '../../../../cloud/operations/controls/handlers.ts'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import { openCloud, type CallAnswer, type TestCloud } from '../../../world/cloud.ts'
import { emptySqlite } from '../../../world/database.ts'
import { droppedLines, openShop, type Shop } from '../../../world/shop.ts'
import { uuid } from '../../../support/uuid.ts'

const COMMAND = '01900000-0000-7000-8000-000000000001'
const executed = (data: Record<string, unknown>): CommandOutcome => ({
  kind: 'executed',
  commandId: COMMAND,
  data,
  durationMs: 850,
})

let app: TestCloud
let shop: Shop
let key: string

beforeEach(async () => {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const commands: Commands = { send: (request) => shop.services.commands.send(request) }
  app = await openCloud({ db, handlersOf: (context) => controlHandlers({ context, commands }) })
  shop = await openShop(db)
  key = await app.key(['controls:write', 'controls:read'], { hubs: '*' })
  await heard()
})

/** Sets the time of the hub's last message. */
async function heard(msAgo = 0): Promise<void> {
  const at = app.runtime.clock.now() - msAgo
  await app.context.db.kysely.updateTable('hub_sessions').set({ last_heard_at: at, health_at: at }).execute()
}

const post = (name: string, query = 'hub=1&bin=2'): Promise<CallAnswer> =>
  app.call('POST', `/api/v1/owners/controls/${name}?${query}`, { key })
const status = (query = 'hub=1&bin=2'): Promise<CallAnswer> =>
  app.call('GET', `/api/v1/owners/controls/get_bin_status?${query}`, { key })
const audit = () =>
  app.context.db.kysely
    .selectFrom('audit_log')
    .select(['actor', 'action', 'hub_id', 'object', 'result', 'detail'])
    .execute()

describe('O §4.6: bins', () => {
  test.each([
    { name: 'open_bin', data: { door: 'open', duration_ms: 850 } },
    { name: 'close_bin', data: { door: 'closed', duration_ms: 850 } },
    { name: 'raise_bin', data: { lift: 'up', duration_ms: 850 } },
    { name: 'lower_bin', data: { lift: 'down', duration_ms: 850 } },
  ])('the command $name moves the hub’s bin, and returns its new state', async ({ name, data }) => {
    shop.answer(executed(data))
    expect(await post(name)).toMatchObject({
      status: 200,
      json: {
        status: 'ok',
        result: { success: true, status_code: 200, response_data: { command_id: COMMAND, ...data } },
      },
    })
    expect(shop.commands).toMatchObject([
      { hubId: 1, body: { name, bin: 2 }, actor: `key:${key.split('_')[1]}` },
    ])
  })

  test('get_bin_status returns the present state from the hub', async () => {
    const bin = { bin_number: 2, enabled: true, status: 'fault', door: 'open', lift: 'up' }
    shop.answer(executed({ ...bin, capacity: 10, occupied: true, fault_code: 'jam', order_id: uuid(7) }))
    const answer = await status()
    expect(answer.json).toEqual({
      status: 'ok',
      result: {
        success: true,
        status_code: 200,
        // An order that is unknown at the cloud has no number.
        response_data: {
          ...bin,
          fault_code: 'jam',
          order_id: null,
          reserved_for_order: null,
          reported_at: '2026-01-01T00:00:00.000Z',
        },
      },
    })
  })

  test('get_bin_status of an offline hub returns the last known state', async () => {
    await heard(600_000)
    expect((await status()).json).toMatchObject({
      result: {
        response_data: {
          bin_number: 2,
          status: 'offline',
          door: 'closed',
          lift: 'down',
          reported_at: '2025-12-31T23:50:00.000Z',
        },
      },
    })
    await app.context.db.kysely.deleteFrom('hub_sessions').execute()
    expect((await status()).json).toMatchObject({
      result: { response_data: { status: 'offline', door: 'unknown', lift: 'unknown', enabled: true } },
    })
  })
})

describe('failed controls', () => {
  const refused = (reason: string): CommandOutcome => ({
    kind: 'refused',
    commandId: COMMAND,
    reason,
    data: null,
  })
  test.each([
    { outcome: { kind: 'offline' } as const, status: 502, details: { reason: 'offline' } },
    {
      outcome: { kind: 'timeout', commandId: COMMAND } as const,
      status: 504,
      details: { reason: 'timeout', command_id: COMMAND, outcome: 'unknown' },
    },
    { outcome: refused('offline'), status: 502, details: { reason: 'offline', outcome: 'refused' } },
    { outcome: refused('interlock'), status: 502, details: { reason: 'interlock', command_id: COMMAND } },
    { outcome: refused('stale_session'), status: 502, details: { reason: 'offline' } },
    { outcome: refused('expired'), status: 504, details: { reason: 'timeout', outcome: 'refused' } },
    {
      outcome: { ...refused('nack'), kind: 'failed' } as CommandOutcome,
      status: 502,
      details: { reason: 'nack', outcome: 'failed' },
    },
    {
      outcome: { ...refused('fault'), kind: 'failed' } as CommandOutcome,
      status: 502,
      details: { reason: 'fault' },
    },
    { outcome: refused('something new'), status: 502, details: { reason: 'fault' } },
  ])(
    'the outcome $outcome.kind (reason: $outcome.reason) is hardware_error with status $status',
    async (row) => {
      shop.answer(row.outcome)
      const answer = await post('close_bin')
      expect(answer).toMatchObject({
        status: row.status,
        json: { error: { code: 'hardware_error', details: row.details } },
      })
      expect(shop.commands).toHaveLength(1)
    },
  )

  test('a bin that the hub does not have, by its health or its answer, is bin_not_found', async () => {
    shop.answer(refused('not_found'))
    expect(await post('open_bin')).toMatchObject({ status: 404, json: { error: { code: 'bin_not_found' } } })
    await shop.hear({ bins: [] })
    shop.answer(executed({}))
    expect(await post('open_bin')).toMatchObject({ status: 404, json: { error: { code: 'bin_not_found' } } })
    expect(await status()).toMatchObject({ status: 404 })
    expect(shop.commands).toHaveLength(1)
  })
})

describe('open_bin as the integrator’s confirmation', () => {
  async function claim(): Promise<number> {
    // Advances the shop's clock and then the interface's clock.
    await shop.hear()
    const userId = await shop.customer()
    const order = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId: order.id, method: 'external' })
    await heard()
    return order.id
  }

  test('open_bin on the bin reserved for an order confirms the payment, and the hub opens the bin later', async () => {
    const orderId = await claim()
    const answer = await post('open_bin', 'hub=1&bin=1')
    expect(answer).toMatchObject({
      status: 200,
      json: {
        status: 'ok',
        result: {
          success: true,
          status_code: 202,
          response_data: { order_id: orderId, processing_status: 20 },
        },
      },
    })
    expect(shop.commands).toEqual([])
    expect(await shop.payments(orderId)).toMatchObject([{ status: 'completed', processor: 'external' }])
    expect((await shop.payments(orderId))[0]!.confirmed_by_key).toBe(key.split('_')[1])
    expect(await audit()).toMatchObject([
      { action: 'controls.open_bin', object: 'bin-1', result: 'confirmed' },
    ])
  })

  test('a repeated open_bin before the bin is filled confirms the same order once', async () => {
    const orderId = await claim()
    await post('open_bin', 'hub=1&bin=1')
    expect((await post('open_bin', 'hub=1&bin=1')).json).toMatchObject({
      result: { status_code: 202, response_data: { order_id: orderId } },
    })
    expect(await shop.outbox()).toHaveLength(1)
    expect(shop.commands).toEqual([])
  })

  test('open_bin on any other bin opens the door and confirms nothing', async () => {
    const orderId = await claim()
    shop.answer(executed({ door: 'open' }))
    expect((await post('open_bin', 'hub=1&bin=2')).json).toMatchObject({ result: { status_code: 200 } })
    expect((await shop.order(orderId)).processing_status).toBe(10)
    expect(shop.commands).toHaveLength(1)
  })

  test.each(['owner', 'technician'] as const)(
    'a person with the role %s opens the reserved bin and confirms no payment',
    async (role) => {
      const orderId = await claim()
      shop.answer(executed({ door: 'open' }))
      await grantRole(app.context.db.kysely, app.runtime, { identity: 'sam', role, hubs: [1] })
      const token = await app.issuer.token({ sub: 'sam' })
      const opened = await app.call('POST', '/api/v1/owners/controls/open_bin?hub=1&bin=1', { token })
      expect(opened.json).toMatchObject({ result: { status_code: 200, response_data: { door: 'open' } } })
      expect((await shop.order(orderId)).processing_status).toBe(10)
      expect(await shop.outbox()).toEqual([])
    },
  )

  test('with confirm=false a key opens the reserved bin and confirms no payment', async () => {
    const orderId = await claim()
    shop.answer(executed({ door: 'open' }))
    expect((await post('open_bin', 'hub=1&bin=1&confirm=false')).json).toMatchObject({
      result: { status_code: 200 },
    })
    expect((await shop.order(orderId)).processing_status).toBe(10)
  })

  test.each(['bin=1', 'bin=2', 'bin=1&confirm=false'])(
    'an order_id without a reservation of the bin is 409 for %s: nothing is confirmed and no door opens',
    async (query) => {
      const orderId = await claim()
      const wrong = query.includes('bin=1') ? orderId + 1 : orderId
      expect(await post('open_bin', `hub=1&${query}&order_id=${wrong}`)).toMatchObject({
        status: 409,
        json: { error: { code: 'order_state_conflict' } },
      })
      expect(shop.commands).toEqual([])
      expect((await shop.order(orderId)).processing_status).toBe(10)
    },
  )

  test('an order_id that the bin is reserved for is confirmed, and the audit log names the key', async () => {
    const orderId = await claim()
    expect((await post('open_bin', `hub=1&bin=1&order_id=${orderId}`)).json).toMatchObject({
      result: { status_code: 202, response_data: { order_id: orderId } },
    })
    const prefix = key.split('_')[1]
    const [record] = await audit()
    expect(record).toMatchObject({ actor: `key:${prefix}`, action: 'controls.open_bin', result: 'confirmed' })
    expect(JSON.parse(record!.detail)).toMatchObject({ order_id: orderId, confirmed_by_key: prefix })
  })

  test('get_bin_status and get_hub_health show the order of a reserved bin until its products are in it', async () => {
    const shown = async () => {
      const { json } = await status('hub=1&bin=1')
      const health = await app.call('GET', '/api/v1/owners/hubs/get_hub_health?hub_id=1', { key: reader })
      const { bins } = health.json as { bins: { bin_number: number; reserved_for_order: number | null }[] }
      return [
        (json as { result: { response_data: { reserved_for_order: number | null } } }).result.response_data
          .reserved_for_order,
        ...bins.map(({ reserved_for_order }) => reserved_for_order),
      ]
    }
    const reader = await app.key(['hubs:read'])
    expect(await shown()).toEqual([null, null, null, null, null])
    const orderId = await claim()
    expect(await shown()).toEqual([orderId, orderId, null, null, null])
    await post('open_bin', 'hub=1&bin=1')
    expect(await shown()).toEqual([orderId, orderId, null, null, null])
    await shop.report({ kind: 'order.preparing', order_id: orderId, bins: [1] })
    const lines = droppedLines(await shop.items(orderId))
    await shop.report({ kind: 'order.ready', order_id: orderId, bins: [1], lines })
    expect(await shown()).toEqual([null, null, null, null, null])
  })

  test('closing, raising or lowering the bin confirms nothing', async () => {
    const orderId = await claim()
    shop.answer(executed({ door: 'closed', lift: 'up' }))
    for (const name of ['close_bin', 'raise_bin', 'lower_bin']) await post(name, 'hub=1&bin=1')
    expect((await shop.order(orderId)).processing_status).toBe(10)
  })
})
