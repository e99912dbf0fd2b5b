import { expect, test } from 'vitest'
import { sql } from 'kysely'
import { appendEvent } from '../../../cloud/events/append-event.ts'
import { publish } from '../../../cloud/events/publish.ts'
import type { CloudContext } from '../../../cloud/platform/context.ts'
import { eventsAfter } from '../../../cloud/events/event-list.ts'
import { onEachDatabase } from '../../world/database.ts'
import { openShop } from '../../world/shop.ts'

const reader = { ownerId: 1, hubs: '*' } as const
const read = async (context: CloudContext, after: number) => {
  await publish(context)
  return eventsAfter(context.db.kysely, { reader }, after, 1000)
}

onEachDatabase('readers of events', (open) => {
  test('a reader that continues from the last event misses none, for any overlap of transactions', async () => {
    const db = await open()
    const { context } = await openShop(db)
    const seen: string[] = []
    let position = 0
    const look = async (): Promise<void> => {
      for (const row of await read(context, position)) {
        seen.push(row.id)
        position = row.position
      }
    }
    const gates: (() => void)[] = []
    const isPostgres = db.kind === 'postgres'
    // On PostgreSQL five events are written in order and committed in the opposite order, with a read after
    // each.
    const written = Array.from({ length: 5 }, (_, index) =>
      db.transact(async (tx) => {
        appendEvent(tx, context, { type: 'hub.online', hubId: 1, data: { index } })
        const gate = () => new Promise<void>((resolve) => (gates[index] = resolve))
        // A derivation that another one registers runs after the event is written.
        if (isPostgres) tx.beforeCommit('written', async () => tx.beforeCommit('gate', gate))
        await Promise.resolve()
      }),
    )
    if (isPostgres)
      for (let index = 4; index >= 0; index -= 1) {
        while (gates[index] === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
        gates[index]!()
        await written[index]
        await look()
      }
    await Promise.all(written)
    await look()
    expect(seen).toHaveLength(5)
    const { rows } = await sql<{ id: string }>`select id from events`.execute(db.kysely)
    expect(seen.toSorted()).toEqual(rows.map(({ id }) => id).toSorted())
  })

  test('all events of a transaction are one piece of news for this process', async () => {
    const db = await open()
    const { context } = await openShop(db)
    let news = 0
    db.onNews(({ kind }) => (news += Number(kind === 'event')))
    await db.transact(async (tx) => {
      for (const index of [1, 2]) appendEvent(tx, context, { type: 'hub.online', hubId: 1, data: { index } })
      const undone = tx.savepoint(() => {
        appendEvent(tx, context, { type: 'hub.offline', hubId: 1, data: {} })
        return Promise.reject(new Error('undone'))
      })
      await expect(undone).rejects.toThrow('undone')
    })
    expect(news).toBe(1)
    expect(await read(context, 0)).toHaveLength(2)
  })

  test('the event of a consequence comes after its cause, also if the writer’s clock is slow', async () => {
    const db = await open()
    const { context, clock } = await openShop(db)
    const append = (aheadMs: number): Promise<void> => {
      const runtime = { ...context.runtime, clock: { ...clock, now: () => clock.now() + aheadMs } }
      return db.transact(async (tx) => {
        appendEvent(tx, { ...context, runtime }, { type: 'hub.online', hubId: 1, data: { aheadMs } })
        await Promise.resolve()
      })
    }
    await append(60_000)
    await append(-60_000)
    const rows = await read(context, 0)
    expect(rows.map(({ data }) => JSON.parse(data) as unknown)).toEqual([
      { aheadMs: 60_000 },
      { aheadMs: -60_000 },
    ])
    expect(rows[0]!.id > rows[1]!.id).toBe(true)
  })

  test('two simultaneous publishers give each event its own position', async () => {
    const db = await open()
    const { context } = await openShop(db)
    context.settings.eventBatch = 2
    for (let index = 0; index < 9; index += 1)
      await db.transact(async (tx) => {
        appendEvent(tx, context, { type: 'hub.online', hubId: 1, data: {} })
        await Promise.resolve()
      })
    await Promise.all([publish(context), publish(context), publish(context)])
    const rows = await eventsAfter(db.kysely, { reader }, 0, 100)
    expect(rows.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  })
})
