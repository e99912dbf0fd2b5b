import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { isUniqueViolation } from '../../../../cloud/platform/store/database.ts'
import { isOutage } from '../../../../cloud/platform/store/outage.ts'
import { onEachDatabase } from '../../../world/database.ts'

onEachDatabase('the cloud store', (open) => {
  test('effects run after the commit, in order, and never after a rollback', async () => {
    const seen: string[] = []
    const db = await open({ checkpoint: (point) => void seen.push(point) })
    await db.transact(async (tx) => {
      tx.afterCommit(() => seen.push('first'))
      await tx.q.insertInto('owners').values({ name: 'A' }).execute()
      tx.afterCommit(() => seen.push('second'))
    })
    expect(seen).toEqual(['db.before-commit', 'db.after-commit', 'first', 'second'])
    seen.length = 0
    const refused = db.transact(async (tx) => {
      tx.afterCommit(() => seen.push('never'))
      await tx.q.insertInto('owners').values({ name: 'B' }).execute()
      throw new Error('no')
    })
    await expect(refused).rejects.toThrow('no')
    expect(seen).toEqual([])
    expect(await db.kysely.selectFrom('owners').select('name').execute()).toEqual([{ name: 'A' }])
  })

  test('a crash before the commit leaves nothing, and a crash after it loses only the effects', async () => {
    let dieAt = 'db.before-commit'
    const db = await open({
      checkpoint: (point) => {
        if (point === dieAt) throw new Error('crash')
      },
    })
    let effects = 0
    const insert = (name: string) =>
      db.transact(async (tx) => {
        tx.afterCommit(() => (effects += 1))
        await tx.q.insertInto('owners').values({ name }).execute()
      })
    await expect(insert('A')).rejects.toThrow('crash')
    dieAt = 'db.after-commit'
    await expect(insert('B')).rejects.toThrow('crash')
    expect(await db.kysely.selectFrom('owners').select('name').execute()).toEqual([{ name: 'B' }])
    expect(effects).toBe(0)
  })

  test('work before the commit runs last, once per name, and not for a part that was rolled back', async () => {
    const seen: string[] = []
    const db = await open({ checkpoint: (point) => void seen.push(point) })
    await db.transact(async (tx) => {
      const derive = (name: string) =>
        tx.beforeCommit(name, async () => {
          const rows = await tx.q.selectFrom('owners').select('name').orderBy('id').execute()
          seen.push(`${name}: ${rows.map((row) => row.name).join()}`)
        })
      derive('sums')
      await tx.q.insertInto('owners').values({ name: 'A' }).execute()
      derive('sums')
      const part = tx.savepoint(() => {
        derive('of the part')
        return Promise.reject(new Error('part'))
      })
      await expect(part).rejects.toThrow('part')
      await tx.q.insertInto('owners').values({ name: 'B' }).execute()
    })
    expect(seen).toEqual(['sums: A,B', 'db.before-commit', 'db.after-commit'])
    const refused = db.transact(async (tx) => {
      await tx.q.insertInto('owners').values({ name: 'C' }).execute()
      tx.beforeCommit('sums', () => Promise.reject(new Error('no')))
    })
    await expect(refused).rejects.toThrow('no')
    expect(await db.kysely.selectFrom('owners').select('name').execute()).toHaveLength(2)
  })

  test('all derivations of a transaction read before the first one writes, and write in the order of their registration', async () => {
    const seen: string[] = []
    const db = await open()
    await db.transact(async (tx) => {
      const derive = (name: string, then?: string) =>
        tx.beforeCommit(name, async () => {
          const rows = await tx.q.selectFrom('owners').select('name').execute()
          seen.push(`${name} reads ${rows.length}`)
          if (then !== undefined) derive(then)
          return async () => {
            await tx.q.insertInto('owners').values({ name }).execute()
            seen.push(`${name} writes`)
          }
        })
      derive('A', 'C')
      derive('B')
      await Promise.resolve()
    })
    expect(seen).toEqual(['A reads 0', 'B reads 0', 'A writes', 'B writes', 'C reads 2', 'C writes'])
  })

  test('a savepoint rolls back only its part, with its effects', async () => {
    const db = await open()
    const effects: string[] = []
    await db.transact(async (tx) => {
      await tx.q.insertInto('owners').values({ name: 'A' }).execute()
      tx.afterCommit(() => effects.push('A'))
      const part = tx.savepoint(async () => {
        await tx.q.insertInto('owners').values({ name: 'B' }).execute()
        tx.afterCommit(() => effects.push('B'))
        throw new Error('part')
      })
      await expect(part).rejects.toThrow('part')
    })
    expect(await db.kysely.selectFrom('owners').select('name').execute()).toEqual([{ name: 'A' }])
    expect(effects).toEqual(['A'])
  })

  test('two deadlocked transactions both succeed in the end', async () => {
    const db = await open()
    await db.kysely
      .insertInto('owners')
      .values([{ name: '1' }, { name: '2' }])
      .execute()
    const attempts = [0, 0]
    // Both hold their first row before either asks for its second.
    let arrived = 0
    let release = (): void => {}
    const bothArrived = new Promise<void>((resolve) => (release = resolve))
    const swap = (first: number, second: number, index: number) =>
      db.transact(async (tx) => {
        attempts[index]! += 1
        const rename = (id: number) =>
          tx.q
            .updateTable('owners')
            .set((eb) => ({ name: eb('name', '||', String(index)) }))
            .where('id', '=', id)
            .execute()
        await rename(first)
        if (++arrived === 2) release()
        if (db.kind === 'postgres') await bothArrived
        await rename(second)
      })
    await Promise.all([swap(1, 2, 0), swap(2, 1, 1)])
    const names = await db.kysely.selectFrom('owners').select('name').orderBy('id').execute()
    expect(names.every(({ name }) => name.length === 3)).toBe(true)
    // The server ends one of the two transactions, or both if its check is slow.
    expect(attempts[0]! + attempts[1]!).toBeGreaterThanOrEqual(db.kind === 'postgres' ? 3 : 2)
  })

  test('64-bit integers and sums are plain numbers', async () => {
    const db = await open()
    await db.kysely.insertInto('owners').values({ name: 'A' }).execute()
    const at = 1_790_000_000_123
    await db.kysely
      .insertInto('audit_log')
      .values([
        { at, actor: 'a', action: 'b', hub_id: null, object: '', result: '', detail: '' },
        { at, actor: 'a', action: 'b', hub_id: null, object: '', result: '', detail: '' },
      ])
      .execute()
    const row = await db.kysely
      .selectFrom('audit_log')
      .select((eb) => [eb.fn.sum('at').as('sum'), eb.fn.countAll().as('count'), eb.fn.max('at').as('max')])
      .executeTakeFirstOrThrow()
    expect(row).toEqual({ sum: 2 * at, count: 2, max: at })
  })

  test('a unique violation is recognised', async () => {
    const db = await open()
    const key = { credential: 'c', key: 'k', fingerprint: '', status: null, headers: null, body: null }
    const insert = () =>
      db.kysely
        .insertInto('idempotency_keys')
        .values({ ...key, locked_until: 0, created_at: 0 })
        .execute()
    await insert()
    const error: unknown = await insert().catch((caught: unknown) => caught)
    expect(isUniqueViolation(error)).toBe(true)
    expect(isUniqueViolation(new Error('other'))).toBe(false)
  })

  test('the caller gets the cause of a rollback', async () => {
    const db = await open()
    const work = db.transact(async (tx) => {
      await tx.q.insertInto('owners').values({ name: 'A' }).execute()
      // SQLite rolls back like this on a full disk.
      await sql`rollback`.execute(tx.q)
      throw new Error('database or disk is full')
    })
    await expect(work).rejects.toThrow('database or disk is full')
    const part = db.transact((tx) =>
      tx.savepoint(async () => {
        await sql`rollback`.execute(tx.q)
        throw new Error('database or disk is full')
      }),
    )
    await expect(part).rejects.toThrow('database or disk is full')
    expect(await db.kysely.selectFrom('owners').select('name').execute()).toEqual([])
  })

  test('a connection that closes during a transaction fails only that call', async () => {
    const db = await open()
    if (db.kind !== 'postgres') return
    const work = db.transact(async (tx) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx.q)
      await tx.q.insertInto('owners').values({ name: 'A' }).execute()
      await sql`select pg_terminate_backend(${rows[0]!.pid})`.execute(db.kysely)
      // The caller waits for something else when the connection closes.
      await new Promise((resolve) => setTimeout(resolve, 100))
      await tx.q.insertInto('owners').values({ name: 'B' }).execute()
    })
    const error: unknown = await work.catch((reason: unknown) => reason)
    expect(isOutage(error)).toBe(true)
    await db.transact((tx) => tx.q.insertInto('owners').values({ name: 'C' }).execute())
    expect(await db.kysely.selectFrom('owners').select('name').execute()).toEqual([{ name: 'C' }])
  })
})
