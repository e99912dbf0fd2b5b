import { describe, expect, test } from 'vitest'
import { ApplyError } from '../../../cloud/gateway/domain.ts'
import { crashAt, SETTLED, World, type CloudProcess } from '../../world/gateway.ts'
import { uuid } from '../../support/uuid.ts'

const completed = (order: number) => ({ kind: 'order.completed', order_id: uuid(order), at: 1 })
const restocked = (index: number) => ({
  kind: 'stock.restocked',
  at: 1,
  product_id: 1,
  location: { cabinet: 1, shelf: 1, row: 1 },
  delta: 1,
  quantity: index,
  restock_id: `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`,
})

/** A connected hub, and a cloud with a domain that records applied entries. */
async function connected(applied: unknown[], fail?: (entry: { kind: string }) => void) {
  const note = (entry: { kind: string }): Promise<void> => {
    fail?.(entry)
    applied.push(entry)
    return Promise.resolve()
  }
  const domain = {
    applyOrderEntry: (_tx: unknown, _context: unknown, _hub: number, entry: { kind: string }) => note(entry),
    applyStockEntries: (
      _tx: unknown,
      _context: unknown,
      _hub: number,
      entries: readonly { kind: string }[],
    ) => {
      for (const entry of entries) fail?.(entry)
      applied.push(entries)
      return Promise.resolve()
    },
  }
  const { world, hub, ...first } = await World.connected({ domain })
  let { cloud } = first
  return { world, hub, domain, cloud: () => cloud, restart: (next: CloudProcess) => (cloud = next) }
}

describe('the ledger stream', () => {
  test('entries are applied in order, and consecutive stock entries together', async () => {
    const applied: unknown[] = []
    const { world, hub } = await connected(applied)
    hub.append(completed(1), restocked(1), restocked(2), completed(2), restocked(3))
    hub.sendEntries()
    await world.pass(100)
    expect(applied).toEqual([completed(1), [restocked(1), restocked(2)], completed(2), [restocked(3)]])
    expect(hub.acks).toMatchObject([{ stream: 'ledger', cursor: 5, resend: false, fork: false }])
  })

  test('a hub that sends endlessly has a limited number of entries applied at once and per minute, and none is lost', async () => {
    const applied: unknown[] = []
    const settings = { entriesAtOnce: 10, entriesPerMinute: 60 }
    const { world, hub } = await World.connected({
      settings,
      domain: { applyOrderEntry: (_tx, _context, _hub, entry) => Promise.resolve(void applied.push(entry)) },
    })
    const entries = Array.from({ length: 16 }, (_, index) => completed(index + 1))
    hub.append(...entries)
    const sendOneByOne = async (): Promise<void> => {
      for (let seq = applied.length + 1; seq <= entries.length; seq++) {
        hub.sendEntries(seq, seq)
        await world.pass(50)
      }
    }
    await sendOneByOne()
    expect(applied).toEqual(entries.slice(0, 10))
    await world.pass(2500)
    await sendOneByOne()
    expect(applied).toEqual(entries.slice(0, 13))
    await world.pass(2500)
    await sendOneByOne()
    expect(applied).toEqual(entries)
  })

  test('a hub that sends large entries endlessly fills the database at a limited rate of bytes, and its stream continues', async () => {
    const { world, hub } = await World.connected({
      settings: { entryBytesAtOnce: 1_000_000, entryBytesPerMinute: 1_200_000 },
    })
    const send = async (): Promise<number> => {
      for (let n = hub.acks.at(-1)?.cursor ?? 0; n < hub.ledger.entries.length; n += 1) {
        hub.sendEntries(n + 1, n + 1)
        await world.pass(50)
      }
      return hub.acks.at(-1)!.cursor
    }
    hub.append(...Array.from({ length: 30 }, () => ({ kind: 'no such kind', text: 'x'.repeat(100_000) })))
    const first = await send()
    expect(first).toBeGreaterThan(8)
    expect(first).toBeLessThan(13)
    await world.pass(30_000)
    const second = (await send()) - first
    expect(second).toBeGreaterThan(4)
    expect(second).toBeLessThan(9)
  })

  test('a repeated entry does not count against the hub’s rate', async () => {
    const applied: unknown[] = []
    const { world, hub } = await World.connected({
      settings: { entriesAtOnce: 2, entriesPerMinute: 1 },
      domain: { applyOrderEntry: (_tx, _context, _hub, entry) => Promise.resolve(void applied.push(entry)) },
    })
    hub.append(completed(1), completed(2))
    for (let time = 0; time < 5; time++) {
      hub.sendEntries(1, 1)
      await world.pass(50)
    }
    hub.sendEntries(2, 2)
    await world.pass(50)
    expect(applied).toEqual([completed(1), completed(2)])
  })

  test('I4: a repeated or overlapping batch is applied once and acknowledged again', async () => {
    const applied: unknown[] = []
    const { world, hub } = await connected(applied)
    hub.append(completed(1), completed(2), completed(3))
    hub.sendEntries(1, 2)
    await world.pass(50)
    hub.sendEntries(1, 2)
    await world.pass(50)
    hub.sendEntries(1, 3)
    await world.pass(50)
    expect(applied).toEqual([completed(1), completed(2), completed(3)])
    expect(hub.acks.map((ack) => ack.cursor)).toEqual([2, 2, 3])
  })

  test('I8: a gap stops the stream, and the missing entries are requested', async () => {
    const applied: unknown[] = []
    const { world, hub } = await connected(applied)
    hub.append(completed(1), completed(2), completed(3))
    hub.sendEntries(2, 3)
    await world.pass(50)
    expect(applied).toEqual([])
    expect(hub.acks).toMatchObject([{ cursor: 0, resend: true }])
    hub.sendEntries(1, 3)
    await world.pass(50)
    expect(applied).toEqual([completed(1), completed(2), completed(3)])
  })

  test('a batch of another history under the same epoch is a fork, and nothing is applied', async () => {
    const applied: unknown[] = []
    const { world, hub } = await connected(applied)
    hub.append(completed(1))
    hub.sendEntries()
    await world.pass(50)
    hub.ledger.entries = []
    hub.append(completed(7), completed(8))
    hub.sendEntries(2, 2)
    await world.pass(50)
    expect(applied).toEqual([completed(1)])
    expect(hub.acks.at(-1)).toMatchObject({ cursor: 1, fork: true })
  })

  test('a batch of an unannounced epoch is ignored, and the hub is asked for a hello', async () => {
    const applied: unknown[] = []
    const { world, hub } = await connected(applied)
    hub.newEpoch()
    hub.append(completed(1))
    hub.ignoresHails = true
    hub.sendEntries()
    await world.pass(50)
    expect([applied, hub.acks, hub.hails.length]).toEqual([[], [], 1])
    hub.hello()
    await world.pass(50)
    hub.sendEntries()
    await world.pass(50)
    expect(applied).toEqual([completed(1)])
  })

  test('a new epoch is applied from its start, and the rows of the old one stay', async () => {
    const applied: unknown[] = []
    const { world, hub } = await connected(applied)
    hub.append(completed(1))
    hub.sendEntries()
    await world.pass(50)
    const old = hub.ledger.epoch
    hub.newEpoch()
    hub.append(completed(2))
    hub.hello()
    await world.pass(50)
    hub.sendEntries()
    await world.pass(50)
    expect(applied).toEqual([completed(1), completed(2)])
    const rows = await world.db.kysely
      .selectFrom('hub_streams')
      .select(['epoch', 'cursor', 'is_current'])
      .where('stream', '=', 'ledger')
      .orderBy('is_current')
      .execute()
    expect(rows).toEqual([
      { epoch: old, cursor: 1, is_current: 0 },
      { epoch: hub.ledger.epoch, cursor: 1, is_current: 1 },
    ])
  })
})

describe('entries that cannot be applied', () => {
  const letters = (world: World) =>
    world.db.kysely.selectFrom('dead_letters').select(['seq', 'body', 'error']).orderBy('seq').execute()

  test('I8: entries that cannot be applied become dead letters, and do not block other entries', async () => {
    const applied: unknown[] = []
    const { world, hub } = await connected(applied, (entry) => {
      if ('order_id' in entry && entry.order_id === uuid(2)) throw new ApplyError('no such order')
    })
    hub.append(completed(1), completed(2), { kind: 'order.nonsense' }, 'text', completed(3))
    hub.sendEntries()
    await world.pass(50)
    expect(applied.slice(-2)).toEqual([completed(1), completed(3)])
    expect(hub.acks).toMatchObject([{ cursor: 5 }])
    const rows = await letters(world)
    expect(rows.map((row) => row.seq)).toEqual([2, 3, 4])
    expect(rows[0]).toMatchObject({ error: 'no such order', body: JSON.stringify(completed(2)) })
  })

  test('I8: among consecutive stock entries only the bad one is lost', async () => {
    const applied: unknown[] = []
    const { world, hub } = await connected(applied, (entry) => {
      if ('quantity' in entry && entry.quantity === 2) throw new ApplyError('no such product')
    })
    hub.append(restocked(1), restocked(2), restocked(3))
    hub.sendEntries()
    await world.pass(50)
    expect(applied.slice(-2)).toEqual([[restocked(1)], [restocked(3)]])
    expect((await letters(world)).map((row) => row.seq)).toEqual([2])
  })

  test('an entry with an unexpected error is tried again, and becomes a dead letter only after repeated failures', async () => {
    const applied: unknown[] = []
    let failures = 0
    const { world, hub, cloud } = await connected(applied, (entry) => {
      if (!('order_id' in entry) || entry.order_id !== uuid(2)) return
      failures += 1
      throw new TypeError('a defect')
    })
    hub.append(completed(1), completed(2), completed(3))
    for (const expected of [1, 2]) {
      hub.sendEntries()
      await world.pass(50)
      expect([hub.acks.length, failures, cloud().faults.length]).toEqual([0, expected, expected])
    }
    hub.sendEntries()
    await world.pass(50)
    expect(hub.acks).toMatchObject([{ cursor: 3 }])
    expect((await letters(world)).map((row) => row.seq)).toEqual([2])
  })

  test('a failure of the store is no failure of the entry: no dead letter, no acknowledgement', async () => {
    const applied: unknown[] = []
    let isBroken = true
    const { world, hub, cloud } = await connected(applied, () => {
      if (isBroken) throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
    })
    hub.append(completed(1))
    for (let attempt = 0; attempt < 6; attempt++) {
      hub.sendEntries()
      await world.pass(50)
    }
    expect([hub.acks.length, (await letters(world)).length, cloud().faults.length]).toEqual([0, 0, 6])
    isBroken = false
    hub.sendEntries()
    await world.pass(50)
    expect(hub.acks).toMatchObject([{ cursor: 1 }])
  })
})

describe('a cloud that dies', () => {
  test.each(['db.before-commit', 'db.after-commit', 'gateway.batch-applied', 'gateway.batch-acknowledged'])(
    'I4: a cloud that dies at %s of a batch applies it once in effect',
    async (point) => {
      const applied: unknown[] = []
      const { world, hub, cloud, domain } = await connected(applied)
      world.kill(cloud())
      const crashing: CloudProcess = world.startCloud('cloud', {
        domain,
        checkpoint: (at) => armed && crashAt(point, () => crashing.life)(at),
      })
      let armed = false
      await world.pass(100)
      hub.connect()
      await world.pass(SETTLED)
      armed = true
      hub.append({ kind: 'alarm', at: 1, code: 'door_forced', subject: 'd', raised: true, detail: '' })
      hub.sendEntries()
      await world.pass(50)
      expect(crashing.life.alive).toBe(false)
      world.startCloud('cloud', { domain })
      await world.pass(100)
      hub.connect()
      await world.pass(SETTLED)
      hub.sendEntries()
      await world.pass(50)
      expect(hub.acks.at(-1)).toMatchObject({ cursor: 1, resend: false })
      const alarms = await world.db.kysely.selectFrom('alarms').selectAll().execute()
      expect(alarms).toHaveLength(1)
    },
  )
})

test('the audit log contains the actions of people at the hub', async () => {
  const { world, hub } = await connected([])
  hub.append({ kind: 'local', at: 1000, action: 'unlock_door', subject: 'door main', outcome: 'executed' })
  hub.sendEntries()
  await world.pass(50)
  const [row] = await world.db.kysely.selectFrom('audit_log').selectAll().orderBy('id', 'desc').execute()
  expect(row).toMatchObject({
    actor: 'hub page',
    action: 'hub.unlock_door',
    hub_id: 1,
    object: 'door-main',
    result: 'executed',
    detail: '{"at":"1970-01-01T00:00:01.000Z"}',
  })
})

test.each([
  [{ person: 'Ada', shared_token: false }, 'person:Ada', {}],
  [{ person: 'Ben', shared_token: true }, 'person:Ben', { shared_token: true }],
  [{ person: null, shared_token: true }, 'hub page', { shared_token: true }],
])('the audit log has the person and both numbers of a count (%o)', async (by, actor, how) => {
  const { world, hub } = await connected([])
  const count = { action: 'count_row', subject: 'row 1/2/3', outcome: 'executed', before: 0, after: 7 }
  hub.append({ kind: 'local', at: 1000, ...count, ...by })
  hub.sendEntries()
  await world.pass(50)
  const { actor: found, detail } = await world.db.kysely
    .selectFrom('audit_log')
    .selectAll()
    .orderBy('id', 'desc')
    .executeTakeFirstOrThrow()
  expect([found, JSON.parse(detail)]).toEqual([
    actor,
    { at: '1970-01-01T00:00:01.000Z', before: 0, after: 7, ...how },
  ])
})

describe('the telemetry stream', () => {
  test('the telemetry stream is lossy: overwritten entries are not awaited', async () => {
    const { world, hub } = await connected([])
    const about = { kind: 'temperature', fridge_number: 1, min: 0, max: 9 }
    const reading = (celsius: number) => ({ ...about, at: celsius + 0.5, celsius })
    const epoch = 'f'.repeat(32)
    const entries = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => ({ tag: from + index, body: reading(from + index) }))
    hub.publish('telemetry', { epoch, first: 1, previousTag: 0, oldest: 1, entries: entries(1, 2) })
    await world.pass(50)
    hub.publish('telemetry', { epoch, first: 6, previousTag: 5, oldest: 6, entries: entries(6, 2) })
    await world.pass(50)
    hub.publish('telemetry', { epoch, first: 7, previousTag: 6, oldest: 6, entries: entries(7, 2) })
    await world.pass(50)
    expect(hub.acks.at(-1)).toMatchObject({ stream: 'telemetry', cursor: 8 })
    // A doubled reading is in the history once.
    const history = await world.db.kysely.selectFrom('temperatures').select(['sum', 'samples']).execute()
    expect(history).toEqual([{ sum: 24, samples: 5 }])
  })
})
