import { expect, test } from 'vitest'
import { errorOf, type CallAnswer, type FormPart } from '../../../world/cloud.ts'
import { filesIn } from '../../support/media.ts'
import { fileOf, html, png } from '../../support/media-samples.ts'
import { cart, DEALS, dealsOverHttp, newDeal } from './support/deals-over-http.ts'

test('a deal can be created with ids on all its parts, read, listed, changed and deleted', async () => {
  const { send } = await dealsOverHttp()
  const created = await send('POST', '/', {
    name: ' Drinks ',
    hub_id: 1,
    description: 'Two drinks, one free.',
    display_text: '2 + 1',
    priority: 3,
    start: '2025-01-01',
    end: '2025-12-31',
    triggers: [{ type: 'CATEGORY', quantity: 2, category: 'drinks' }],
    rewards: [{ type: 'FREE_ITEM', quantity: 1, product_id: 2 }],
    constraints: [
      { type: 'SALEAMT', value: '500' },
      { type: 'STACKABLE', value: '1' },
    ],
  })
  const deal = {
    id: 1,
    name: 'Drinks',
    description: 'Two drinks, one free.',
    display_text: '2 + 1',
    display_image: null,
    priority: 3,
    is_deal_active: true,
    start: '2025-01-01',
    end: '2025-12-31',
    triggers: [
      { id: 1, type: 'CATEGORY', quantity: 2, category: 'Drinks', category_id: 1, product_id: null },
    ],
    rewards: [{ id: 1, type: 'FREE_ITEM', quantity: 1, product_id: 2, discount_pct_or_price: null }],
    constraints: [
      { id: 1, type: 'SALEAMT', value: '500' },
      { id: 2, type: 'STACKABLE', value: '1' },
    ],
  }
  expect([created.status, created.json]).toEqual([200, deal])
  expect((await send('GET', '/1')).json).toEqual(deal)
  expect((await send('GET', '/hub/1')).json).toEqual([deal])
  const { id, name, description, display_text, display_image, priority } = deal
  expect((await send('GET', '/active/1')).json).toEqual([
    { id, name, description, display_text, display_image, priority },
  ])
  const changed = await send('PUT', '/1', { name: 'Two drinks', is_deal_active: false, end: null })
  expect(changed.json).toEqual({ ...deal, name: 'Two drinks', is_deal_active: false, end: null })
  expect((await send('PUT', '/1', {})).json).toEqual(changed.json)
  expect((await send('GET', '/active/1')).json).toEqual([])
  expect((await send('GET', '/hub/1')).json).toEqual([changed.json])
  const deleted = await send('DELETE', '/1')
  expect([deleted.status, deleted.json]).toEqual([200, { success: true, message: 'The deal was deleted.' }])
  for (const [method, path] of [
    ['GET', '/1'],
    ['PUT', '/1'],
    ['DELETE', '/1'],
    ['GET', '/1/redemptions'],
  ] as const) {
    const gone = await send(method, path, method === 'PUT' ? {} : undefined)
    expect([gone.status, errorOf(gone).error.code]).toEqual([404, 'deal_not_found'])
  }
  expect((await send('GET', '/hub/1')).json).toEqual([])
})

test('a deal belongs to its owner, and keys of other hubs have no access', async () => {
  const { send, create, key, context } = await dealsOverHttp()
  const id = await create()
  const q = context.db.kysely
  const { id: _, ...hub } = await q
    .selectFrom('hubs')
    .selectAll()
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  await q
    .insertInto('hubs')
    .values({ ...hub, name: 'Third' })
    .execute()
  const scopes = ['promotions:read', 'promotions:write'] as const
  const strangers = [
    await key([...scopes], { ownerId: 2 }),
    await key([...scopes], { hubs: [3] }),
    await key([...scopes], { hubs: [] }),
  ]
  for (const stranger of strangers) {
    for (const [method, path, body] of [
      ['GET', `/${id}`],
      ['PUT', `/${id}`, { name: 'Mine' }],
      ['DELETE', `/${id}`],
      ['GET', `/${id}/redemptions`],
    ] as const) {
      const answer = await send(method, path, body, stranger)
      expect([answer.status, errorOf(answer).error.code]).toEqual([404, 'deal_not_found'])
    }
    for (const [path, body] of [
      ['/', newDeal()],
      ['/check-eligibility', cart({ cart_total: 679 })],
      ['/apply-reward', cart({ deal_ids: [id] })],
    ] as const) {
      const answer = await send('POST', path, body, stranger)
      expect([403, 404]).toContain(answer.status)
      expect(['hub_access_denied', 'hub_not_found']).toContain(errorOf(answer).error.code)
    }
  }
  expect((await send('GET', `/${id}`)).json).toMatchObject({ name: 'Ten percent' })
})

test('the dates of a deal can be changed separately, but the end cannot precede the start', async () => {
  const { send, create } = await dealsOverHttp()
  const id = await create({ start: '2025-02-01', end: '2025-02-28' })
  for (const [body, place] of [
    [{ start: '2025-03-01' }, 'start'],
    [{ end: '2025-01-31' }, 'end'],
    [{ start: '2025-04-02', end: '2025-04-01' }, 'end'],
  ] as const) {
    const answer = await send('PUT', `/${id}`, body)
    expect(answer.status).toBe(422)
    expect(errorOf(answer).detail).toMatchObject([{ loc: ['body', place], type: 'value_error' }])
  }
  const moved = await send('PUT', `/${id}`, { start: '2025-03-01', end: '2025-03-31' })
  expect(moved.json).toMatchObject({ start: '2025-03-01', end: '2025-03-31' })
  const unknown = await send('PUT', `/${id}`, { priority: 1 })
  expect(errorOf(unknown).detail).toMatchObject([{ loc: ['body', 'priority'], type: 'extra_forbidden' }])
})

test('a deal can be created by a form with one trigger, one reward and an image, which is deleted with the deal', async () => {
  const { call, send, folder, owner, context } = await dealsOverHttp()
  const form = (data: object, ...files: FormPart[]): Promise<CallAnswer> =>
    call('POST', `${DEALS}/create-from-owner`, {
      key: owner,
      form: [['dealData', JSON.stringify(data)], ...files],
    })
  const data = {
    deal: { name: 'Water', hub_id: 1, start: '2025-01-01' },
    trigger: { type: 'QUANTITY', quantity: 2, product_id: 1 },
    reward: { type: 'FREE_ITEM', quantity: 1, product_id: 1 },
  }
  const created = await form(data, ['file', fileOf(png, 'deal.png')])
  expect([created.status, created.json]).toEqual([
    200,
    {
      id: 1,
      name: 'Water',
      is_deal_active: true,
      display_image: expect.stringMatching(/^http:\/\/larder\.test\/files\/deals\/.+\.png\?/) as string,
    },
  ])
  expect(filesIn(folder)).toHaveLength(1)
  expect((await send('GET', '/1')).json).toMatchObject({
    start: '2025-01-01',
    end: null,
    display_image: (created.json as { display_image: string }).display_image,
    triggers: [{ type: 'QUANTITY', quantity: 2, product_id: 1 }],
    rewards: [{ type: 'FREE_ITEM', quantity: 1, product_id: 1 }],
  })

  const without = await form(data)
  expect(errorOf(without).detail).toMatchObject([{ loc: ['body', 'file'], type: 'missing' }])
  for (const refused of [
    await form({ ...data, trigger: undefined }, ['file', fileOf(png, 'deal.png')]),
    await form({ ...data, reward: { type: 'FREE_ITEM', product_id: 9 } }, ['file', fileOf(png, 'deal.png')]),
    await form(data, ['file', fileOf(html, 'deal.png')]),
  ])
    expect([400, 415, 422]).toContain(refused.status)
  expect(
    errorOf(await form({ ...data, reward: { type: 'FREE_ITEM', product_id: 9 } }, ['file', fileOf(png, 'x')]))
      .detail,
  ).toMatchObject([{ loc: ['body', 'dealData', 'reward', 'product_id'], type: 'value_error' }])
  expect(filesIn(folder)).toHaveLength(1)

  context.settings.dealImageRequired = false
  expect((await form(data)).json).toMatchObject({ id: 2, display_image: null })
  await send('DELETE', '/1')
  await expect.poll(() => filesIn(folder)).toEqual([])
})

test('the history of deals has status, usage and pages, newest first', async () => {
  const { send, create, runtime } = await dealsOverHttp()
  const id = await create({ constraints: [{ type: 'MAXUSES', value: '3' }] })
  const history = async (query = '') => (await send('GET', `/${id}/redemptions${query}`)).json
  expect(await history()).toEqual({
    deal_id: id,
    status: 'active',
    usage: { total: 0, limit: 3, remaining: 3 },
    total_discount: 0,
    data: [],
    next_cursor: null,
    has_more: false,
  })
  for (const user_id of [11, 12, 13])
    await send('POST', '/apply-reward', cart({ deal_ids: [id], user_id, device_uuid: `phone ${user_id}` }))
  expect(await history('?limit=2')).toEqual({
    deal_id: id,
    status: 'exhausted',
    usage: { total: 3, limit: 3, remaining: 0 },
    total_discount: 201,
    data: [13, 12].map((user) => ({
      id: user - 10,
      order_id: null,
      user_id: user,
      device_uuid: `phone ${user}`,
      discount_amount: 67,
      status: 'pending',
      redeemed_at: '2026-01-01T00:00:00.000Z',
    })),
    next_cursor: 2,
    has_more: true,
  })
  expect(await history('?limit=2&cursor=2')).toMatchObject({
    data: [{ id: 1 }],
    next_cursor: null,
    has_more: false,
  })
  expect((await send('GET', '/active/1')).json).toEqual([])
  const foreign = await create()
  const answer = await send('GET', `/${foreign}/redemptions?cursor=2`)
  expect([answer.status, errorOf(answer).error.code]).toEqual([400, 'invalid_cursor'])
  runtime.clock.advance(30 * 60_000)
  expect(await history()).toMatchObject({
    status: 'active',
    usage: { total: 0, remaining: 3 },
    total_discount: 0,
    data: [{ status: 'released' }, { status: 'released' }, { status: 'released' }],
  })
  await send('PUT', `/${id}`, { start: '2026-01-02' })
  expect(await history()).toMatchObject({ status: 'scheduled' })
  await send('PUT', `/${id}`, { start: null, end: '2025-02-28' })
  expect(await history()).toMatchObject({ status: 'expired' })
  await send('PUT', `/${id}`, { is_deal_active: false })
  expect(await history()).toMatchObject({ status: 'inactive' })
})

test('promo products are those of active deals, each once', async () => {
  const { send, create } = await dealsOverHttp()
  await create({
    triggers: [{ type: 'QUANTITY', quantity: 2, product_id: 2 }],
    rewards: [
      { type: 'FREE_ITEM', product_id: 2 },
      { type: 'FREE_ITEM', product_id: 1 },
    ],
  })
  await create({ rewards: [{ type: 'FREE_ITEM', product_id: 1 }] })
  expect((await send('GET', '/promo-products/1')).json).toEqual([1, 2])
  await send('PUT', '/1', { end: '2025-02-28' })
  expect((await send('GET', '/promo-products/1')).json).toEqual([1])
})

test('every change of a deal is in the audit log', async () => {
  const { send, create, context } = await dealsOverHttp()
  const id = await create()
  await send('PUT', `/${id}`, { is_deal_active: false })
  await send('DELETE', `/${id}`)
  const records = await context.db.kysely.selectFrom('audit_log').selectAll().orderBy('id').execute()
  expect(records.map(({ action, object, hub_id, result }) => [action, object, hub_id, result])).toEqual([
    ['deals.create', `deal-${id}`, 1, 'executed'],
    ['deals.update', `deal-${id}`, 1, 'executed'],
    ['deals.delete', `deal-${id}`, 1, 'executed'],
  ])
})

test('a hub has at most 200 active deals that are not over', async () => {
  const { send, create, context } = await dealsOverHttp()
  const q = context.db.kysely
  const first = await create()
  const { id: _, ...row } = await q.selectFrom('deals').selectAll().executeTakeFirstOrThrow()
  await q
    .insertInto('deals')
    .values(Array.from({ length: 199 }, () => row))
    .execute()
  const refusedAt = async (method: string, path: string, body: object): Promise<unknown> => {
    const answer = await send(method, path, body)
    expect(answer.status).toBe(422)
    return errorOf(answer).detail
  }
  expect(await refusedAt('POST', '/', newDeal())).toMatchObject([{ loc: ['body', 'hub_id'] }])
  const off = await create({ is_deal_active: false })
  const over = await create({ end: '2020-01-01' })
  expect(await refusedAt('PUT', `/${off}`, { is_deal_active: true })).toMatchObject([
    { loc: ['body', 'is_deal_active'] },
  ])
  expect(await refusedAt('PUT', `/${over}`, { end: null })).toMatchObject([{ loc: ['body', 'end'] }])
  expect((await send('PUT', `/${first}`, { name: 'Renamed', is_deal_active: true })).status).toBe(200)
  expect((await send('PUT', `/${first}`, { is_deal_active: false })).status).toBe(200)
  expect((await send('PUT', `/${off}`, { is_deal_active: true })).status).toBe(200)
})
