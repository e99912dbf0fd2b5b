import { expect, test } from 'vitest'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { createTaskRunner, type TaskRunner } from '../../../../cloud/platform/work/runner.ts'
import type { Tasks } from '../../../../cloud/platform/work/task.ts'
import { TASK_LEASE_MS } from '../../../../cloud/platform/work/task-store.ts'
import { onEachDatabase } from '../../support/database.ts'
import { openShop, type Shop } from '../../support/shop.ts'

const NAME = 'delete_expired_orders'
const PERIOD_MS = 30_000
/** For a machine that has much else to do. */
const patience = { timeout: 15_000, interval: 20 }

/** A task that ends when it is told to. */
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

function runnerOf(context: CloudContext, processId: string, run: () => Promise<number[]>): TaskRunner {
  const idle = { periodMs: PERIOD_MS, run: () => Promise.resolve<number[]>([]) }
  const tasks: Tasks = {
    bestsellers: idle,
    'update-timed-out-orders': idle,
    delete_expired_orders: { periodMs: PERIOD_MS, run },
    'notify-about-expiring-orders': idle,
    'update-unclaimed-orders-to-failed': idle,
    'notify-about-unclaimed-orders': idle,
  }
  return createTaskRunner(context, processId, tasks)
}

const stateOf = ({ context }: Shop, id: string) =>
  context.db.kysely
    .selectFrom('task_runs')
    .select(['state', 'error'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()

onEachDatabase('background tasks', (open) => {
  test('a task is under way once, whoever triggers it: the others are told of that run', async () => {
    const { context } = await openShop(await open())
    const work = gate()
    const runners = ['a', 'b', 'c'].map((name) => runnerOf(context, name, work.run))
    const triggered = await Promise.all(
      Array.from({ length: 12 }, (_, index) => runners[index % 3]!.trigger(NAME)),
    )
    expect(work.runs()).toBe(1)
    expect(new Set(triggered.map(({ run }) => run.id)).size).toBe(1)
    expect(triggered[0]!.run.state).toBe('STARTED')
    work.open([7, 8])
    const ended = await Promise.all(triggered.map(({ ended }) => ended))
    expect(ended.filter(({ state }) => state === 'SUCCESS')).toMatchObject([{ affected_ids: '[7,8]' }])

    const again = await runners[1]!.trigger(NAME)
    expect(again.run.id).not.toBe(triggered[0]!.run.id)
    work.open([])
    expect(await again.ended).toMatchObject({ state: 'SUCCESS', affected_ids: '[]' })
  })

  test('a run whose process died is over when its lease is, and is a failure', async () => {
    const shop = await openShop(await open())
    const dead = await runnerOf(shop.context, 'dead', () => new Promise(() => {})).trigger(NAME)
    shop.clock.clear()
    const living = runnerOf(shop.context, 'living', () => Promise.resolve([1]))
    shop.clock.advance(TASK_LEASE_MS - 1)
    expect((await living.trigger(NAME)).run.id).toBe(dead.run.id)
    shop.clock.advance(1)
    const next = await living.trigger(NAME)
    expect(await next.ended).toMatchObject({ state: 'SUCCESS' })
    expect(await stateOf(shop, dead.run.id)).toEqual({ state: 'FAILURE', error: 'its process ended' })
  })

  test('a run that takes long keeps its lease', async () => {
    const shop = await openShop(await open())
    const work = gate()
    const { run, ended } = await runnerOf(shop.context, 'a', work.run).trigger(NAME)
    for (let passed = 0; passed < 3 * TASK_LEASE_MS; passed += TASK_LEASE_MS / 3) {
      shop.clock.advance(TASK_LEASE_MS / 3)
      await settled(shop)
    }
    expect((await runnerOf(shop.context, 'b', work.run).trigger(NAME)).run.id).toBe(run.id)
    work.open([])
    expect(await ended).toMatchObject({ id: run.id, state: 'SUCCESS' })
  })

  test('a task that fails says so, and is tried again in its time', async () => {
    const faults: unknown[] = []
    const shop = await openShop(await open(), { onFault: (error) => faults.push(error) })
    let isBroken = true
    const runner = runnerOf(shop.context, 'a', () =>
      isBroken ? Promise.reject(new RangeError('secret of the inside')) : Promise.resolve([]),
    )
    const { run, ended } = await runner.trigger(NAME)
    await expect(ended).rejects.toThrow(RangeError)
    expect(await stateOf(shop, run.id)).toEqual({ state: 'FAILURE', error: 'RangeError' })
    isBroken = false
    expect(await (await runner.trigger(NAME)).ended).toMatchObject({ state: 'SUCCESS' })
  })

  test('a task is run when it is due; one that was missed for days is run once', async () => {
    const shop = await openShop(await open())
    let runs = 0
    const started = (): TaskRunner => {
      const runner = runnerOf(shop.context, 'a', () => Promise.resolve([(runs += 1)]))
      runner.start()
      return runner
    }
    const first = started()
    await expect.poll(() => runs, patience).toBe(1)
    await settled(shop, 'all')
    shop.clock.advance(PERIOD_MS - 5000)
    await settled(shop, 'all')
    expect(runs).toBe(1)
    // A look that is under way when the next one is due is not doubled: time must go on.
    await expect
      .poll(() => {
        if (runs < 2) shop.clock.advance(5000)
        return runs
      }, patience)
      .toBe(2)
    await settled(shop, 'all')
    await first.stop()

    shop.clock.advance(3 * 24 * 3_600_000)
    const second = started()
    await expect.poll(() => runs, patience).toBe(3)
    await settled(shop, 'all')
    await second.stop()
    expect(runs).toBe(3)
  })
})

/** Until no task is under way, as the books have it. */
const settled = ({ context }: Shop, which: 'all' | 'others' = 'others'): Promise<void> =>
  expect
    .poll(async () => {
      await new Promise((resolve) => setImmediate(resolve))
      const { count } = await context.db.kysely
        .selectFrom('task_schedules')
        .select((eb) => eb.fn.countAll<number | string>().as('count'))
        .where('run_id', 'is not', null)
        .where('task', '<>', which === 'all' ? '' : NAME)
        .executeTakeFirstOrThrow()
      return Number(count)
    }, patience)
    .toBe(0)
