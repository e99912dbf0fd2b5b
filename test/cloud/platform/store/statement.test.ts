import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { openDatabase, type CloudDatabase, type Queries } from '../../../../cloud/platform/store/database.ts'
import { numbersIn, textsIn, recordset } from '../../../../cloud/platform/store/recordset.ts'
import { allOf, statement } from '../../../../cloud/platform/store/statement.ts'
import { onEachDatabase } from '../../../world/database.ts'

const insert = statement((q, owner: { id: number; name: string }) =>
  q.insertInto('owners').values({ id: owner.id, name: owner.name }),
)
const named = statement((q, { name, from }: { name: string; from: number }) =>
  q
    .selectFrom('owners')
    .select(['id', 'name'])
    .where('id', '>=', from)
    .where((eb) => eb.or([eb('name', '=', name), eb('name', '=', 'always')]))
    .orderBy('id'),
)
const renameAll = statement(
  (_, { names }: { names: readonly { id: number; name: string }[] }, { kind }) => sql<{ name: string }>`
    update owners set name = r.name from ${recordset(kind, { id: 'int', name: 'text' }, names)}
    where owners.id = r.id returning owners.name`,
)
const stop = statement((q, { id }: { id: number }) =>
  q.updateTable('hubs').set({ accepting_orders: 0 }).where('id', '=', id).returning('id'),
)
const rename = statement((q, { id, name }: { id: number; name: string }) =>
  q.updateTable('owners').set({ name }).where('id', '=', id),
)
interface Lists {
  ids: readonly number[]
  names: readonly string[]
}

onEachDatabase('statements that are compiled once', (open) => {
  let db: CloudDatabase
  beforeEach(async () => {
    db = await open()
    await insert(db.kysely, { id: 1, name: 'one' })
    await insert(db.kysely, { id: 2, name: "o'two" })
    await insert(db.kysely, { id: 3, name: 'always' })
  })

  test('each run of a statement has its own values', async () => {
    expect(await named(db.kysely, { name: 'one', from: 1 })).toEqual([
      { id: 1, name: 'one' },
      { id: 3, name: 'always' },
    ])
    expect(await named(db.kysely, { name: "o'two", from: 2 })).toEqual([
      { id: 2, name: "o'two" },
      { id: 3, name: 'always' },
    ])
    expect(await named(db.kysely, { name: 'one', from: 4 })).toEqual([])
  })

  test('statements that a transaction sends at once have the rows and the effects of single statements', async () => {
    const found = await db.transact(async ({ q }) => {
      const written = await Promise.all([
        named(q, { name: 'one', from: 1 }),
        insert(q, { id: 4, name: 'four' }),
        stop(q, { id: 4 }),
        renameAll(q, { names: [{ id: 4, name: 'renamed' }] }),
        stop(q, { id: 4 }),
        named(q, { name: 'renamed', from: 4 }),
      ])
      const reads = await Promise.all([
        named(q, { name: 'one', from: 1 }),
        named(q, { name: "o'two", from: 2 }),
        named(q, { name: 'one', from: 9 }),
      ])
      return [...written, ...reads]
    })
    const [one, two, always] = [
      { id: 1, name: 'one' },
      { id: 2, name: "o'two" },
      { id: 3, name: 'always' },
    ]
    expect(found).toEqual([
      [one, always],
      [],
      [],
      [{ name: 'renamed' }],
      [],
      [{ id: 4, name: 'renamed' }],
      [one, always],
      [two, always],
      [],
    ])
  })

  test('an error of one of several statements that a transaction sends at once undoes all of them', async () => {
    const failing = db.transact(({ q }) =>
      Promise.all([
        stop(q, { id: 1 }),
        insert(q, { id: 5, name: 'five' }),
        insert(q, { id: 1, name: 'again' }),
      ]),
    )
    await expect(failing).rejects.toThrow(/unique/i)
    expect(await named(db.kysely, { name: 'five', from: 5 })).toEqual([])
  })

  test('a query returns the number of changed rows, even if a compiled statement has the same text', async () => {
    await rename(db.kysely, { id: 1, name: 'first' })
    const [changed] = await db.transact(({ q }) =>
      Promise.all([
        q.updateTable('owners').set({ name: 'second' }).where('id', '=', 1).executeTakeFirst(),
        stop(q, { id: 1 }),
      ]),
    )
    expect(changed.numUpdatedRows).toBe(1n)
  })

  test('each run of a statement returns its own rows', async () => {
    const one = { id: 1, name: 'first' }
    expect(await renameAll(db.kysely, { names: [one] })).toEqual([{ name: 'first' }])
    expect(await renameAll(db.kysely, { names: [] })).toEqual([])
    expect(await renameAll(db.kysely, { names: [one, { id: 2, name: 'second' }] })).toHaveLength(2)
  })

  test('lists of any length are found completely', async () => {
    const among = statement((q, { ids, names }: Lists) =>
      q
        .selectFrom('owners')
        .select('id')
        .where((eb) => eb.or([eb('id', 'in', numbersIn(q, ids)), eb('name', 'in', textsIn(q, names))]))
        .orderBy('id'),
    )
    const range = (from: number, to: number): number[] =>
      Array.from({ length: to - from + 1 }, (_, index) => from + index)
    const nameOf = (id: number): string => `n '${id}'`
    for (const id of range(4, 40)) await insert(db.kysely, { id, name: nameOf(id) })
    for (const length of [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17]) {
      const [ids, others] = [range(4, 3 + length), range(30 - length, 29)]
      const found = await among(db.kysely, { ids, names: others.map(nameOf) })
      const wanted = [...new Set([...ids, ...others])].toSorted((a, b) => a - b)
      expect(found.map(({ id }) => id)).toEqual(wanted)
      expect(await among(db.kysely, { ids, names: [] })).toHaveLength(length)
      const renamed = await renameAll(db.kysely, { names: ids.map((id) => ({ id, name: nameOf(id) })) })
      expect(renamed).toHaveLength(length)
    }
  })

  test('a server stores few texts of a statement for lists of any length, and plans the texts of short lists once', async () => {
    if (db.kind === 'sqlite') return
    await db.transact(async ({ q }) => {
      for (let length = 0; length <= 40; length += 1)
        await renameAll(q, { names: Array.from({ length }, (_, id) => ({ id: id + 100, name: 'n' })) })
      for (let run = 0; run < 20; run += 1) await renameAll(q, { names: [{ id: 1, name: `run ${run}` }] })
      const { rows } = await sql<{ planned: number; isShort: boolean }>`
        select custom_plans as planned, statement like '%limit %' as "isShort" from pg_prepared_statements
        where statement like '%update owners set name = r.name%'`.execute(q)
      expect(rows.length).toBeLessThan(7)
      // By then the server has found that a plan for the exact values makes no difference.
      for (const { planned, isShort } of rows) if (isShort) expect(planned).toBeLessThan(7)
      expect(rows.some(({ isShort }) => isShort)).toBe(true)
    })
  })

  test('a statement with named columns still works after a newer version adds a column', async () => {
    const all = statement((q) => q.selectFrom('owners').select(allOf('owners')).where('id', '=', 1))
    const before = await all(db.kysely, {})
    await sql`alter table owners add column added integer`.execute(db.kysely)
    expect(await all(db.kysely, {})).toEqual(before)
  })

  test('simultaneous statements of a transaction run in order: a read waits behind the lock before it', async () => {
    const lock = statement((q, { id }: { id: number }, locks) =>
      locks.forUpdate(q.selectFrom('owners').select('id').where('id', '=', id)),
    )
    const rename = statement((q, { id, name }: { id: number; name: string }) =>
      q.updateTable('owners').set({ name }).where('id', '=', id),
    )
    const nameOf = statement((q, { id }: { id: number }) =>
      q.selectFrom('owners').select('name').where('id', '=', id),
    )
    let isAsked!: () => void
    const asked = new Promise<void>((resolve) => (isAsked = resolve))
    const { other } = await db.transact(async (first) => {
      await lock(first.q, { id: 1 })
      const other = db.transact(async (tx) => {
        const read = Promise.all([lock(tx.q, { id: 1 }), nameOf(tx.q, { id: 2 })])
        isAsked()
        return (await read)[1]
      })
      // On SQLite the other transaction waits for the whole first one.
      if (first.kind === 'postgres') await asked
      await rename(first.q, { id: 2, name: 'renamed' })
      return { other }
    })
    expect(await other).toEqual([{ name: 'renamed' }])
  })

  test('a statement beside a failed one writes nothing after the rollback', async () => {
    const writes = [
      (q: Queries, id: number) => insert(q, { id, name: 'beside' }),
      (q: Queries, id: number) => q.insertInto('owners').values({ id, name: 'beside' }).execute(),
    ]
    for (let turns = 0; turns < 60; turns += 1) {
      let beside: Promise<unknown> | undefined
      const failed = db.transact(({ q }) => {
        beside = named(q, { name: 'one', from: 1 }).then(async () => {
          for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
          return writes[turns % 2]!(q, 10 + turns)
        })
        return Promise.all([Promise.reject(new Error('failed')), beside])
      })
      await expect(failed).rejects.toThrow('failed')
      await Promise.allSettled([beside])
    }
    expect(await named(db.kysely, { name: 'beside', from: 10 })).toEqual([])
  })

  test('a statement after its transaction is refused, because the connection has another user', async () => {
    const { q } = await db.transact((tx) => Promise.resolve(tx))
    await expect(named(q, { name: 'one', from: 1 })).rejects.toThrow('already')
  })

  test('a statement runs in its transaction, and is rolled back with it', async () => {
    const failed = db.transact(async (tx) => {
      await insert(tx.q, { id: 4, name: 'four' })
      expect(await named(tx.q, { name: 'four', from: 4 })).toEqual([{ id: 4, name: 'four' }])
      throw new Error('undone')
    })
    await expect(failed).rejects.toThrow('undone')
    expect(await named(db.kysely, { name: 'four', from: 4 })).toEqual([])
  })
})

test('a statement refuses rest and spread on its values, which would be empty', async () => {
  const db = openDatabase({ url: 'sqlite::memory:' })
  onTestFinished(() => db.close())
  const byRest = statement((q, { name, ...rest }: { name: string; from: number }) =>
    q.selectFrom('owners').select('id').where('name', '=', name).where('id', '>=', rest.from),
  )
  await expect(byRest(db.kysely, { name: 'one', from: 1 })).rejects.toThrow('taken by name')
})

test('a statement must name its columns, because a server refuses a prepared statement after a new column', async () => {
  const db = openDatabase({ url: 'sqlite::memory:' })
  onTestFinished(() => db.close())
  const everything = [
    statement((q) => q.selectFrom('owners').selectAll()),
    statement((q) => q.selectFrom('owners').selectAll('owners')),
    statement((q) => q.insertInto('owners').values({ name: 'One' }).returningAll()),
  ]
  for (const each of everything) await expect(each(db.kysely, {})).rejects.toThrow('are named')
})

test('SQLite gets the few values of columns in conditions of partial indexes in the text, because it would prepare the statement for each run', async () => {
  const db = openDatabase({ url: 'sqlite::memory:' })
  onTestFinished(() => db.close())
  const payments = db.kysely.selectFrom('payments').select('id')
  const known = payments.where('status', '=', 'completed').where('is_late', '=', 0)
  expect(known.compile().parameters).toEqual([])
  // A column with any values, and a value that is no word, stay parameters.
  expect(payments.where('method', '=', 'pm_card_visa').compile().parameters).toEqual(['pm_card_visa'])
  const intents = db.kysely.selectFrom('sandbox_intents').select('id').where('status', '=', "it's")
  expect(intents.compile().parameters).toEqual(["it's"])
})

test('SQLite files: a read outside a transaction sees committed data, and does not wait for a writer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'larder-statement-'))
  const db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}` })
  onTestFinished(async () => {
    await db.close()
    rmSync(folder, { recursive: true })
  })
  await db.migrate()
  const byName = statement((q, { name }: { name: string }) =>
    q.selectFrom('owners').select('name').where('name', '=', name),
  )
  await db.transact(async (tx) => {
    await tx.q.insertInto('owners').values({ name: 'One' }).execute()
    expect(await byName(tx.q, { name: 'One' })).toEqual([{ name: 'One' }])
    // The writing connection is taken: a read on it would wait forever.
    expect(await byName(db.kysely, { name: 'One' })).toEqual([])
  })
  expect(await byName(db.kysely, { name: 'One' })).toEqual([{ name: 'One' }])
})
