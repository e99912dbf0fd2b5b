import { expect, test } from 'vitest'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import {
  backgroundTasks,
  TASK_LEASE_MS,
  taskHandlers,
  type BackgroundTasks,
} from '../../../../cloud/operations/diag/background-tasks.ts'
import { openCloud } from '../../../world/cloud.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'

const NAME = 'delete_expired_orders'

/** A task that ends on request. */
function gate(): { run: () => Promise<number[]>; open(ids: number[]): void; runs: () => number } {
  let count = 0
  let resolve: (ids: number[]) => void = () => {}
  return {
    run() {
      count += 1
      return new Promise((done) => (resolve = done))
    },
    open: (ids) => resolve(ids),
    runs: () => count,
  }
}

const tasksOf = (context: CloudContext, processId: string, run: () => Promise<number[]>): BackgroundTasks =>
  backgroundTasks(context, processId, run)

const stateOf = ({ context }: Shop, id: string) =>
  context.db.kysely
    .selectFrom('task_runs')
    .select(['state', 'error'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()

onEachDatabase('background tasks', (open) => {
  test('a task runs once at a time, and all callers get the same run', async () => {
    const { context } = await openShop(await open())
    const work = gate()
    const processes = ['a', 'b', 'c'].map((name) => tasksOf(context, name, work.run))
    const triggered = await Promise.all(
      Array.from({ length: 12 }, (_, index) => processes[index % 3]!.trigger(NAME)),
    )
    expect(work.runs()).toBe(1)
    expect(new Set(triggered.map(({ run }) => run.id)).size).toBe(1)
    expect(triggered[0]!.run.state).toBe('STARTED')
    work.open([7, 8])
    const ended = await Promise.all(triggered.map(({ ended }) => ended))
    expect(ended.filter(({ state }) => state === 'SUCCESS')).toMatchObject([{ affected_ids: '[7,8]' }])

    const again = await processes[1]!.trigger(NAME)
    expect(again.run.id).not.toBe(triggered[0]!.run.id)
    work.open([])
    expect(await again.ended).toMatchObject({ state: 'SUCCESS', affected_ids: '[]' })
  })

  test('a caller at the end of a run gets that run or starts the next one', async () => {
    const { context } = await openShop(await open())
    const ended = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (name) => {
        const tasks = tasksOf(context, name, () => Promise.resolve([]))
        for (let n = 0; n < 100; n += 1) await (await tasks.trigger(NAME)).ended
        return name
      }),
    )
    expect(ended).toEqual(['a', 'b', 'c', 'd'])
  })

  test('a run of a dead process ends with its lease, as a failure', async () => {
    const shop = await openShop(await open())
    const dead = await tasksOf(shop.context, 'dead', () => new Promise(() => {})).trigger(NAME)
    shop.clock.clear()
    const living = tasksOf(shop.context, 'living', () => Promise.resolve([1]))
    shop.clock.advance(TASK_LEASE_MS - 1)
    expect((await living.trigger(NAME)).run.id).toBe(dead.run.id)
    shop.clock.advance(1)
    const next = await living.trigger(NAME)
    expect(await next.ended).toMatchObject({ state: 'SUCCESS' })
    expect(await stateOf(shop, dead.run.id)).toEqual({ state: 'FAILURE', error: 'its process ended' })
  })

  test('a long run keeps its lease', async () => {
    const shop = await openShop(await open())
    const work = gate()
    const { run, ended } = await tasksOf(shop.context, 'a', work.run).trigger(NAME)
    const lease = async (): Promise<number> => {
      const row = await shop.context.db.kysely
        .selectFrom('task_runs')
        .select('leased_until')
        .where('id', '=', run.id)
        .executeTakeFirstOrThrow()
      return row.leased_until
    }
    for (let passed = 0; passed < 3 * TASK_LEASE_MS; passed += TASK_LEASE_MS / 3) {
      shop.clock.advance(TASK_LEASE_MS / 3)
      await expect.poll(lease, { timeout: 15_000 }).toBe(shop.clock.now() + TASK_LEASE_MS)
    }
    expect((await tasksOf(shop.context, 'b', work.run).trigger(NAME)).run.id).toBe(run.id)
    work.open([])
    expect(await ended).toMatchObject({ id: run.id, state: 'SUCCESS' })
  })

  test('a call that waits for a task returns the end of a run that another process started', async () => {
    const work = gate()
    let other: BackgroundTasks | undefined
    const {
      call,
      key,
      runtime: { clock },
    } = await openCloud({
      db: await open(),
      handlersOf: (context) => {
        other = tasksOf(context, 'other', work.run)
        return taskHandlers(context, tasksOf(context, 'asked', work.run))
      },
    })
    const { run, ended } = await other!.trigger('bestsellers')
    const options = { key: await key(['diag:write']) }
    const ask = (query: string) => call('GET', `/diag/bg_tasks/bestsellers${query}`, options)
    expect(await ask('')).toMatchObject({ status: 202, json: { task_id: run.id, state: 'STARTED' } })
    let answer: unknown
    const timers = clock.pending
    const asked = ask('?sync_mode=true').then((given) => (answer = given))
    await expect.poll(() => answer !== undefined || clock.pending > timers, { timeout: 15_000 }).toBe(true)
    work.open([3])
    await ended
    // A read of the database takes real time, in which no timer is pending.
    const answered = async (): Promise<boolean> => {
      await clock.pass(250)
      return answer !== undefined
    }
    await expect.poll(answered, { timeout: 15_000 }).toBe(true)
    expect(await asked).toMatchObject({
      status: 200,
      json: { task_id: run.id, state: 'SUCCESS', result: { processed: 1, affected_ids: [3] } },
    })
    expect(work.runs()).toBe(1)
  })

  test('a call that waits for a run of a dead process ends when the lease of that run ends', async () => {
    const { call, key, context, runtime } = await openCloud({
      db: await open(),
      handlersOf: (given) => taskHandlers(given, tasksOf(given, 'asked', gate().run)),
    })
    const { clock } = runtime
    const values = {
      id: 'dead',
      task: 'bestsellers',
      process_id: 'dead',
      state: 'STARTED',
      leased_until: clock.now() + 1000,
      started_at: clock.now(),
    } as const
    await context.db.kysely.insertInto('task_runs').values(values).execute()
    let answer: unknown
    const timers = clock.pending
    const asked = call('GET', '/diag/bg_tasks/bestsellers?sync_mode=true', {
      key: await key(['diag:write']),
    }).then((given) => (answer = given))
    await expect.poll(() => clock.pending > timers, { timeout: 15_000 }).toBe(true)
    clock.advance(1000)
    const answered = async (): Promise<boolean> => {
      await clock.pass(1)
      return answer !== undefined
    }
    await expect.poll(answered, { timeout: 15_000 }).toBe(true)
    expect(await asked).toMatchObject({
      status: 200,
      json: { task_id: 'dead', state: 'FAILURE', error: 'its process ended' },
    })
    expect(clock.now()).toBeLessThan(values.started_at + TASK_LEASE_MS)
  })

  test('a failed run returns its failure without internals, and the next run is separate', async () => {
    let isBroken = true
    const run = () =>
      isBroken ? Promise.reject(new RangeError('a secret of the inside')) : Promise.resolve([7, 9])
    const { call, key } = await openCloud({
      db: await open(),
      handlersOf: (context) => taskHandlers(context, tasksOf(context, 'a', run)),
    })
    const trigger = async () =>
      call('GET', '/diag/bg_tasks/delete_expired_orders', { key: await key(['diag:write']) })
    const failed = await trigger()
    expect(failed).toMatchObject({
      status: 200,
      json: { task: 'delete_expired_orders', state: 'FAILURE', result: null, error: 'RangeError' },
    })
    expect(JSON.stringify(failed.json)).not.toContain('secret')
    isBroken = false
    expect(await trigger()).toMatchObject({
      status: 200,
      json: { state: 'SUCCESS', result: { processed: 2, affected_ids: [7, 9] }, error: null },
    })
  })
})
