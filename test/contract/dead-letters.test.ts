import { beforeEach, describe, expect, test } from 'vitest'
import { deadLetters, replayDeadLetter } from '../../cloud/gateway/dead-letters.ts'
import { enqueue } from '../../cloud/gateway/outbox.ts'
import { hubDomain } from '../../cloud/hub-domain.ts'
import type { CloudEntry } from '../../protocol/mqtt/cloud-entries.ts'
import { Plant } from '../world/plant.ts'

/** Entries that could not be applied, at the hub and at the cloud: people are alarmed and can act. */

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

const core = () => plant.hub.hub!.core
const alarms = async (): Promise<[incident: string, isOpen: boolean][]> =>
  (
    await plant.db.kysely
      .selectFrom('alarms')
      .select(['incident', 'cleared_at'])
      .where('kind', '=', 'dead_letter')
      .orderBy('seq')
      .execute()
  ).map(({ incident, cleared_at }) => [incident, cleared_at === null])
const audited = async (action: string): Promise<number> =>
  (await plant.db.kysely.selectFrom('audit_log').select('id').where('action', '=', action).execute()).length

describe('dead letters at the hub', () => {
  const send = (entry: unknown) => plant.wait(plant.db.transact((tx) => enqueue(tx, 1, entry as CloudEntry)))

  test('an entry that the hub cannot apply is listed, and raises an alarm within seconds', async () => {
    await send({ kind: 'mystery' })
    await plant.run(5000)
    expect(await alarms()).toEqual([['at the hub', true]])
    expect(core().deadLetters()).toMatchObject([
      { kind: 'mystery', body: '{"kind":"mystery"}', error: expect.any(String) as string },
    ])
    // The hub applies the entries behind it.
    const order = await plant.order({ 4: 1 })
    await plant.until(order, 40)
  })

  test('a replay at the hub requests a snapshot, which removes all dead letters and clears the alarm', async () => {
    await send({ kind: 'mystery' })
    await plant.run(5000)
    expect(core().replayDeadLetters()).toEqual({ ok: true })
    await plant.run(30_000)
    expect(core().deadLetters()).toEqual([])
    expect(await alarms()).toEqual([['at the hub', false]])
    expect(await audited('hub.replay_dead_letters')).toBe(1)
    expect(core().replayDeadLetters()).toEqual({ ok: false, reason: 'not_found' })
    const order = await plant.order({ 4: 1 })
    await plant.until(order, 40)
  })

  test('a hub requests a snapshot at the first start of another version, but not at a restart of the same version', async () => {
    await send({ kind: 'mystery' })
    await plant.run(5000)
    const restart = async () => {
      plant.hub.kill()
      await plant.run(30_000)
      return core().deadLetters().length
    }
    expect(await restart()).toBe(1)
    plant.hub.journal.prepare("UPDATE dead_letters SET software = 'an older version'").run()
    expect(await restart()).toBe(0)
    expect(await alarms()).toEqual([['at the hub', false]])
  })

  test('a dropped dead letter of the cloud is deleted, and the audit log records it', async () => {
    await send({ kind: 'mystery' })
    await send({ kind: 'riddle' })
    await plant.run(5000)
    const [first, second] = core().deadLetters()
    expect(core().dropDeadLetter(first!.id)).toEqual({ ok: true })
    expect(core().dropDeadLetter(first!.id)).toEqual({ ok: false, reason: 'not_found' })
    await plant.run(2000)
    expect(await alarms()).toEqual([['at the hub', true]])
    core().dropDeadLetter(second!.id)
    await plant.run(2000)
    expect((await alarms()).at(-1)).toEqual(['at the hub', false])
    expect(await audited('hub.drop_dead_letter')).toBe(2)
  })
})

test('after a replay of a dead letter the hub still decides about its own state, and stock adds up', async () => {
  const { context } = plant.services
  const row = (entry: object) =>
    plant.db.kysely
      .insertInto('dead_letters')
      .values({
        hub_id: 1,
        stream: 'ledger',
        epoch: '0'.repeat(32),
        seq: 1,
        body: JSON.stringify(entry),
        error: 'no such product',
        at: 0,
      })
      .execute()
  const location = { cabinet: 1, shelf: 1, row: 3 }
  const held = () =>
    core()
      .stock()
      .find(({ product_id }) => product_id === 3)!.quantity
  const mirrored = async () =>
    (
      await plant.db.kysely
        .selectFrom('facings')
        .select('quantity')
        .where('product_id', '=', 3)
        .executeTakeFirstOrThrow()
    ).quantity
  const before = held()
  await plant.wait(
    row({
      kind: 'stock.restocked',
      at: 1,
      product_id: 3,
      location,
      delta: 2,
      quantity: 99,
      restock_id: '00000000-0000-7000-8000-000000000001',
    }),
  )
  const [letter] = await plant.wait(deadLetters(plant.db.kysely, {}))
  expect(await plant.wait(replayDeadLetter(context, hubDomain(), { id: letter!.id, actor: 'test' }))).toEqual(
    {
      id: letter!.id,
      outcome: 'applied',
    },
  )
  expect(await mirrored()).toBe(before)
  const epoch = async () =>
    (
      await plant.db.kysely
        .selectFrom('hub_streams')
        .select('epoch')
        .where('stream', '=', 'ledger')
        .where('is_current', '=', 1)
        .execute()
    ).length
  expect(await epoch()).toBe(0)
  await plant.run(90_000)
  expect([await epoch(), await mirrored(), held()]).toEqual([1, before, before])
  const ledger = await plant.db.kysely
    .selectFrom('stock_ledger')
    .select(['kind', 'delta'])
    .where('product_id', '=', 3)
    .execute()
  expect(ledger.map(({ kind, delta }) => [kind, delta])).toEqual([
    ['restocked', 2],
    ['snapshot', -2],
  ])
  const order = await plant.order({ 3: 1 })
  await plant.until(order, 40)
  expect(await plant.statusOf(order)).toBe(40)
})
