import { beforeEach, expect, test } from 'vitest'
import { deadLetters, dropDeadLetter, replayDeadLetter } from '../../../cloud/gateway/dead-letters.ts'
import { DeadLetterRoom } from '../../../cloud/gateway/dead-letter-room.ts'
import { receiveBatch } from '../../../cloud/gateway/receiver.ts'
import { deadLettersChanged } from '../../../cloud/operations/alarms/hub-alarms.ts'
import type { Tx } from '../../../cloud/platform/store/database.ts'
import { hubDomain } from '../../../cloud/hub-domain.ts'
import type { HubDomain } from '../../../cloud/gateway/domain.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { uuid } from '../../support/uuid.ts'
import { onEachDatabase } from '../../world/database.ts'
import { simultaneously } from '../../world/simultaneous.ts'
import { openShop, type Shop } from '../../world/shop.ts'

const EPOCH = 'e'.repeat(32)
const location = { cabinet: 1, shelf: 1, row: 1 }

onEachDatabase('dead letters', (open) => {
  let shop: Shop
  beforeEach(async () => {
    shop = await openShop(await open(), { products: [{ price: 100, quantity: 9 }] })
    await shop.context.db.kysely.deleteFrom('hub_streams').execute()
    for (const stream of ['ledger', 'telemetry'] as const)
      await shop.context.db.kysely
        .insertInto('hub_streams')
        .values({ hub_id: 1, stream, epoch: EPOCH, cursor: 0, tag: 0, is_current: 1, created_at: 0 })
        .execute()
  })

  let seq = 0
  const settings = { deadLetterBytes: 20_000, largeDeadLetters: 3 }
  beforeEach(() => void (seq = 0))
  /** Receives an entry while a part of the cloud is `broken`. */
  const receive = async (
    body: object,
    broken: Partial<HubDomain> = {},
    stream: 'ledger' | 'telemetry' = 'ledger',
  ) => {
    seq += 1
    await receiveBatch(
      {
        context: shop.context,
        domain: { ...hubDomain(), ...broken },
        hubId: 1,
        room: new DeadLetterRoom({ clock: shop.clock, settings, hubId: 1 }),
        onCommandFinished: () => {},
      },
      stream,
      {
        epoch: EPOCH,
        first: seq,
        previousTag: seq - 1,
        oldest: 1,
        entries: [{ tag: seq, body: { at: shop.clock.now(), ...body } }],
      },
      true,
    )
  }
  const defect = (): Promise<never> => Promise.reject(new TypeError('a defect of the cloud'))
  const list = () => deadLetters(shop.context.db.kysely, {})
  const replay = (id: number, domain = hubDomain()) =>
    replayDeadLetter(shop.context, domain, { id, actor: 'test' })
  const lengths = async () => (await list()).map(({ body }) => JSON.stringify(body).length)

  test('a dead letter that is too long is stored with its kind, its beginning and its length, and is not replayed', async () => {
    const text = 'x'.repeat(100_000)
    await receive({ kind: 'no such kind', text })
    const [letter] = await list()
    expect(letter).toMatchObject({ kind: 'no such kind' })
    const { cut_from: length, head } = letter!.body as { cut_from: number; head: string }
    expect(length).toBeGreaterThan(100_000)
    expect(head).toContain('no such kind')
    expect((await lengths())[0]).toBeLessThan(20_000)
    expect(await replay(letter!.id)).toMatchObject({
      outcome: 'failed',
      error: expect.stringContaining('only its beginning'),
    })
  })

  test('only some dead letters of a hub may be large, and small ones are always stored whole', async () => {
    for (let n = 0; n < 6; n += 1) await receive({ kind: 'no such kind', text: 'x'.repeat(15_000) })
    await receive({ kind: 'no such kind', text: 'y'.repeat(3000) })
    const all = await lengths()
    expect(all).toHaveLength(7)
    expect(all.filter((length) => length > 15_000)).toHaveLength(3)
    expect(all.filter((length) => length > 4096)).toHaveLength(3)
    expect((await list()).at(-1)!.body).toMatchObject({ text: 'y'.repeat(3000) })
  })

  const followed = async () =>
    (
      await shop.context.db.kysely
        .selectFrom('hub_streams')
        .select('stream')
        .where('is_current', '=', 1)
        .execute()
    ).length
  const audit = () =>
    shop.context.db.kysely
      .selectFrom('audit_log')
      .select(['action', 'object'])
      .where('action', 'like', 'dead_letters.%')
      .execute()

  test('dead letters are listed with their hub, place, kind and error, the oldest first', async () => {
    await receive({ kind: 'mystery' })
    await receive({ kind: 'order.collecting', order_id: uuid(1) }, { applyOrderEntry: defect })
    expect(await list()).toMatchObject([
      { hub_id: 1, stream: 'ledger', epoch: EPOCH, seq: 1, kind: 'mystery' },
      { seq: 2, kind: 'order.collecting', error: 'a defect of the cloud', body: { order_id: uuid(1) } },
    ])
    expect(await deadLetters(shop.context.db.kysely, { hubId: 2 })).toEqual([])
    expect(await deadLetters(shop.context.db.kysely, { limit: 1 })).toHaveLength(1)
  })

  test('dead letters are applied after a repair and deleted, and the hub is asked for a snapshot', async () => {
    const order = await shop.paidOrder({ 1: 1 })
    const entry = { kind: 'order.preparing', order_id: order.uuid, bins: [2] }
    await receive(entry, { applyOrderEntry: defect })
    const [letter] = await list()
    expect(await shop.order(order.id)).toMatchObject({ processing_status: OrderStatus.QUEUED })
    expect(await followed()).toBe(2)
    expect(await replay(letter!.id)).toEqual({ id: letter!.id, outcome: 'applied' })
    expect(await shop.order(order.id)).toMatchObject({ processing_status: OrderStatus.PREPARING })
    expect(await list()).toEqual([])
    expect(await followed()).toBe(0)
    expect(await audit()).toEqual([{ action: 'dead_letters.replay', object: `dead-letter-${letter!.id}` }])
    expect(await replay(letter!.id)).toEqual({ id: letter!.id, outcome: 'not_found' })
  })

  test('dead letters that still fail are kept with the new error, and change nothing', async () => {
    const order = await shop.paidOrder({ 1: 1 })
    await receive({ kind: 'order.preparing', order_id: order.uuid, bins: [] }, { applyOrderEntry: defect })
    await receive({ kind: 'mystery' })
    const [first, second] = await list()
    const broken: HubDomain = {
      ...hubDomain(),
      async applyOrderEntry(tx, context, hubId, entry) {
        await hubDomain().applyOrderEntry(tx, context, hubId, entry)
        throw new Error('another defect')
      },
    }
    expect(await replay(first!.id, broken)).toEqual({
      id: first!.id,
      outcome: 'failed',
      error: 'another defect',
    })
    expect(await replay(second!.id)).toMatchObject({ outcome: 'failed' })
    expect(await shop.order(order.id)).toMatchObject({ processing_status: OrderStatus.QUEUED })
    expect(await list()).toMatchObject([{ id: first!.id, error: 'another defect' }, { id: second!.id }])
    expect([await followed(), await audit()]).toEqual([2, []])
  })

  test('dead letters stay unchanged if the store fails during a replay', async () => {
    await receive({ kind: 'order.collecting', order_id: uuid(1) }, { applyOrderEntry: defect })
    const [letter] = await list()
    const outage = Object.assign(new Error('no connection'), { code: 'ECONNREFUSED' })
    const away: HubDomain = { ...hubDomain(), applyOrderEntry: () => Promise.reject(outage) }
    await expect(replay(letter!.id, away)).rejects.toThrow('no connection')
    expect(await list()).toEqual([letter])
  })

  test('dead letters of stock are booked once, and the shelf keeps its present stock (I5)', async () => {
    const order = await shop.paidOrder({ 1: 2 })
    const [item] = await shop.items(order.id)
    const drop = (operation: number, quantity: number) => ({
      kind: 'stock.dropped',
      product_id: 1,
      location,
      delta: -1,
      quantity,
      operation_id: uuid(operation),
      order_id: order.uuid,
      line_id: item!.id,
      delivered: 1,
      bin: 1,
    })
    await receive({ kind: 'order.preparing', order_id: order.uuid, bins: [1] })
    await receive(drop(1, 8), { applyStockEntries: defect })
    await receive(drop(2, 7))
    const lines = [{ line_id: item!.id, dropped: 2, doubtful: 0, bins: [1] }]
    await receive({ kind: 'order.ready', order_id: order.uuid, bins: [1], lines })
    const [letter] = await list()
    expect(await replay(letter!.id)).toMatchObject({ outcome: 'applied' })
    expect(await shop.product(1)).toEqual({ quantity: 7, reserved: 0 })
    expect(await shop.items(order.id)).toMatchObject([{ qty_dropped: 2 }])
    const ledger = await shop.context.db.kysely
      .selectFrom('stock_ledger')
      .select(['kind', 'delta', 'cause_id', 'item_id'])
      .orderBy('id')
      .execute()
    expect(ledger.reduce((sum, { delta }) => sum + delta, 0)).toBe(-2)
    expect(ledger.filter(({ cause_id }) => cause_id === uuid(1))).toMatchObject([
      { kind: 'dropped', delta: -1, item_id: item!.id },
    ])
  })

  /** An order of two units that its hub prepares; the report of an unconfirmed unit was not applied. */
  async function unconfirmedUnapplied() {
    const order = await shop.paidOrder({ 1: 2 })
    const [item] = await shop.items(order.id)
    await receive({ kind: 'order.preparing', order_id: order.uuid, bins: [1] })
    await receive(
      {
        kind: 'operation.unknown',
        operation_id: uuid(1),
        device: 'cabinet-1',
        action: 'dispense',
        reason: 'no_drop',
        started_at: 1,
        location,
        order_id: order.uuid,
        line_id: item!.id,
        product_id: 1,
      },
      { applyOperationEntry: defect },
    )
    return { order, item: item! }
  }

  test('dead letters of an order that its hub still prepares are applied to it', async () => {
    const { order } = await unconfirmedUnapplied()
    await replay((await list())[0]!.id)
    expect(await shop.items(order.id)).toMatchObject([{ qty_doubtful: 1 }])
  })

  test('dead letters of a unit that a later report of its order includes are not counted again', async () => {
    const { order, item } = await unconfirmedUnapplied()
    const lines = [{ line_id: item.id, dropped: 1, doubtful: 1, bins: [1] }]
    await receive({ kind: 'order.ready', order_id: order.uuid, bins: [1], lines })
    await replay((await list())[0]!.id)
    expect(await shop.items(order.id)).toMatchObject([{ qty_doubtful: 1 }])
  })

  test('dead letters about states are not applied, because the requested snapshot has the present state', async () => {
    const blocked = { of: 'row', location, blocked: 'jam', since: 1 }
    await receive({ kind: 'state', state: blocked }, { applyStateEntry: defect })
    await receive({ kind: 'state', state: { ...blocked, blocked: null } })
    await receive(
      { kind: 'snapshot', stock: [], unknown_operations: [], states: [blocked], alarms: [] },
      { applySnapshot: defect },
    )
    for (const { id } of await list()) expect(await replay(id)).toMatchObject({ outcome: 'applied' })
    const places = await shop.context.db.kysely.selectFrom('blocked_places').selectAll().execute()
    expect([places, await list(), await followed()]).toEqual([[], [], 0])
  })

  test('dead letters of temperatures are recorded, and no snapshot is requested', async () => {
    await receive({ kind: 'temperature', fridge_number: 1 }, {}, 'telemetry')
    const [letter] = await list()
    expect(letter).toMatchObject({ stream: 'telemetry' })
    expect(await replay(letter!.id)).toMatchObject({ outcome: 'failed' })
    const whole = { kind: 'temperature', at: 1, fridge_number: 1, celsius: 3, min: 2, max: 4 }
    await shop.context.db.kysely.deleteFrom('dead_letters').execute()
    await shop.context.db.kysely
      .insertInto('dead_letters')
      .values({
        hub_id: 1,
        stream: 'telemetry',
        epoch: EPOCH,
        seq: 1,
        body: JSON.stringify(whole),
        error: '',
        at: 0,
      })
      .execute()
    expect(await replay((await list())[0]!.id)).toMatchObject({ outcome: 'applied' })
    expect(await shop.context.db.kysely.selectFrom('temperatures').select('max').execute()).toEqual([
      { max: 4 },
    ])
    expect(await followed()).toBe(2)
  })

  test('a dropped dead letter leaves a record of its content', async () => {
    await receive({ kind: 'mystery' })
    const [letter] = await list()
    const act = { id: letter!.id, actor: 'test' }
    expect([
      await dropDeadLetter(shop.context, hubDomain(), act),
      await dropDeadLetter(shop.context, hubDomain(), act),
    ]).toEqual([true, false])
    expect([await list(), await followed()]).toEqual([[], 2])
    expect(await audit()).toEqual([{ action: 'dead_letters.drop', object: `dead-letter-${letter!.id}` }])
  })

  test('the alarm about dead letters ends if the last two are deleted at the same time', async () => {
    const { context } = shop
    const { db } = context
    await receive({ kind: 'unheard' })
    await receive({ kind: 'unheard' })
    const remove = (id: number) => async (tx: Tx) => {
      await tx.q.deleteFrom('dead_letters').where('id', '=', id).execute()
      deadLettersChanged(tx, context, 1)
    }
    const [first, second] = await list()
    await simultaneously(db, remove(first!.id), remove(second!.id))
    const alarms = db.kysely.selectFrom('alarms').select(['kind', 'cleared_at']).execute()
    expect(await alarms).toEqual([{ kind: 'dead_letter', cleared_at: shop.clock.now() }])
  })
})
