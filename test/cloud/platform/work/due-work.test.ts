import { expect, test } from 'vitest'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { schedule, unschedule } from '../../../../cloud/platform/work/queue.ts'
import { done, Unavailable, WorkRunner, type WorkKinds } from '../../../../cloud/platform/work/runner.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'

/** For a busy machine. */
const patience = { timeout: 15_000, interval: 20 }

onEachDatabase('due work', (open) => {
  async function stage(settings: Partial<CloudContext['settings']> = {}) {
    const faults: unknown[] = []
    const shop = await openShop(await open(), { onFault: (error) => faults.push(error) })
    const context: CloudContext = { ...shop.context, settings: { ...shop.context.settings, ...settings } }
    return { shop, context, faults, clock: shop.clock }
  }
  const due = (context: CloudContext, kind: string, subjects: readonly string[], inMs = 0) =>
    context.db.transact((tx) => schedule(tx, kind, subjects, context.runtime.clock.now() + inMs))
  const rows = ({ context }: Shop) =>
    context.db.kysely.selectFrom('due_work').selectAll().orderBy('kind').orderBy('subject').execute()

  /** A kind of work that records its runs. */
  function recorder(fails = false) {
    const seen: string[] = []
    const kind = {
      run({ subject }: { subject: string }) {
        seen.push(subject)
        return fails ? Promise.reject(new Error(`${subject} is broken`)) : Promise.resolve(done)
      },
    }
    return { seen, kind }
  }

  test('due work runs when it is due, not before, and is deleted when it is done', async () => {
    const { shop, context, clock } = await stage()
    const { seen, kind } = recorder()
    const runner = new WorkRunner(context, { kind })
    await due(context, 'kind', ['a'], 1000)
    await due(context, 'kind', ['b'], 2000)
    await runner.drain()
    expect(seen).toEqual([])
    clock.advance(1000)
    await runner.drain()
    expect(seen).toEqual(['a'])
    clock.advance(1000)
    await runner.drain()
    expect(seen).toEqual(['a', 'b'])
    expect(await rows(shop)).toEqual([])
  })

  test('recurring work is rescheduled after each run, whatever its result', async () => {
    const { shop, context, clock } = await stage()
    let looks = 0
    const kinds: WorkKinds = {
      hourly: {
        recurring: ['all'],
        run() {
          looks += 1
          // One run asks to run again at once, and one run fails.
          if (looks === 2) return Promise.resolve({ next: clock.now() })
          if (looks === 3) return Promise.reject(new Error('broken'))
          return Promise.resolve({ next: clock.now() + 3_600_000 })
        },
      },
    }
    const runner = new WorkRunner(context, kinds)
    for (let start = 0; start < 2; start += 1) {
      await runner.ensureRecurring()
      await runner.drain()
    }
    expect(looks).toBe(1)
    for (const passed of [3_600_000, 1, 60_000]) {
      clock.advance(passed)
      await runner.drain()
    }
    expect(looks).toBe(4)
    expect(await rows(shop)).toMatchObject([
      { due_at: clock.now() + 3_600_000, attempts: 0, last_error: null },
    ])
  })

  test.each([1, 100])(
    'all due work is done with a batch of %i, because no batch is a limit',
    async (workBatch) => {
      const { shop, context } = await stage({ workBatch })
      const { seen, kind } = recorder()
      const subjects = Array.from({ length: 250 }, (_, index) => `s${index}`)
      await due(context, 'kind', subjects)
      await new WorkRunner(context, { kind }).drain()
      expect(seen).toHaveLength(250)
      expect(new Set(seen)).toEqual(new Set(subjects))
      expect(await rows(shop)).toEqual([])
    },
  )

  test('claimed work that was not started is released at the stop of its process', async () => {
    const { shop, context } = await stage({ workConcurrency: 1 })
    await due(context, 'kind', ['a', 'b'])
    await context.db.kysely.updateTable('due_work').set({ attempts: 3, last_error: 'away' }).execute()
    const begun: string[] = []
    let end = (): void => {}
    const run = async ({ subject }: { subject: string }) => {
      begun.push(subject)
      if (subject === 'a') await new Promise<void>((resolve) => (end = resolve))
      return done
    }
    const runner = new WorkRunner(context, { kind: { run } })
    const pass = runner.drain()
    await expect.poll(() => begun, patience).toEqual(['a'])
    const stopped = runner.stop()
    end()
    await Promise.all([stopped, pass])
    expect(begun).toEqual(['a'])
    expect(await rows(shop)).toMatchObject([
      {
        subject: 'b',
        due_at: context.runtime.clock.now(),
        leased_until: null,
        attempts: 3,
        last_error: 'away',
      },
    ])
    const { seen, kind } = recorder()
    await new WorkRunner(context, { kind }).drain()
    expect(seen).toEqual(['b'])
  })

  test('claimed work that waits for its turn stays claimed, however long its batch takes', async () => {
    const { shop, context, clock } = await stage({ workConcurrency: 1, workBatch: 3 })
    await due(context, 'kind', ['a', 'b', 'c'])
    const begun: string[] = []
    let end = (): void => {}
    const run = async ({ subject, attempts }: { subject: string; attempts: number }) => {
      begun.push(`${subject} ${attempts}`)
      await new Promise<void>((resolve) => (end = resolve))
      return done
    }
    const pass = new WorkRunner(context, { kind: { run } }).drain()
    await expect.poll(() => begun, patience).toEqual(['a 1'])
    const { workLeaseMs } = context.settings
    for (let passed = 0; passed < 2 * workLeaseMs; passed += workLeaseMs / 3) {
      clock.advance(workLeaseMs / 3)
      const leases = async () => (await rows(shop)).map(({ leased_until }) => leased_until)
      await expect.poll(leases, patience).toEqual(Array<number>(3).fill(clock.now() + workLeaseMs))
    }
    const { seen, kind } = recorder()
    await new WorkRunner(context, { kind }).drain()
    expect(seen).toEqual([])
    for (const next of ['b 1', 'c 1']) {
      end()
      await expect.poll(() => begun.at(-1), patience).toBe(next)
    }
    end()
    await pass
    expect(await rows(shop)).toEqual([])
  })

  test('work of a whole fleet can be scheduled at once and again, beyond the limits of a statement', async () => {
    const { shop, context, clock } = await stage()
    const fleet = Array.from({ length: 12_000 }, (_, index) => `hub-${index}`)
    await due(context, 'kind', fleet)
    await due(context, 'kind', fleet, 1000)
    const waiting = await rows(shop)
    expect(waiting).toHaveLength(fleet.length)
    expect(new Set(waiting.map(({ due_at }) => due_at))).toEqual(new Set([clock.now() + 1000]))
  })

  test('due and recurring work is done although the database was down at the start', async () => {
    const { context, clock, faults } = await stage()
    const { db } = context
    const { seen, kind } = recorder()
    await due(context, 'kind', ['a'])
    let isAway = true
    const frail = {
      ...db,
      get kysely() {
        if (isAway) throw new Error('the database is away')
        return db.kysely
      },
    }
    const runner = new WorkRunner({ ...context, db: frail }, { kind: { ...kind, recurring: ['b'] } })
    runner.start()
    clock.advance(1)
    await expect.poll(() => faults.length, patience).toBe(1)
    isAway = false
    clock.advance(context.settings.workPollMs)
    await expect.poll(() => seen.toSorted(), patience).toEqual(['a', 'b'])
    await runner.stop()
  })

  test('work of one kind does not wait for an endless run of another kind', async () => {
    const { context, clock } = await stage()
    const { seen, kind } = recorder()
    const runner = new WorkRunner(context, { stuck: { run: () => new Promise(() => {}) }, kind })
    runner.start()
    await due(context, 'stuck', ['x'])
    await due(context, 'kind', ['y'])
    await expect
      .poll(() => {
        clock.advance(10)
        return seen
      }, patience)
      .toEqual(['y'])
  })

  test('failing work is retried with growing pauses and its error, and is left to a person after the last attempt', async () => {
    const { shop, context, faults, clock } = await stage()
    const { seen, kind } = recorder(true)
    const limited = { ...kind, attempts: 3, backoff: { firstMs: 1000, maxMs: 60_000 } }
    const runner = new WorkRunner(context, { limited })
    await due(context, 'limited', ['x'])
    const pauses: number[] = []
    for (let attempt = 1; attempt < 3; attempt += 1) {
      await runner.drain()
      const [row] = await rows(shop)
      expect(row).toMatchObject({ attempts: attempt, last_error: 'x is broken', claim: null })
      pauses.push(row!.due_at! - clock.now())
      clock.advance(60_000)
    }
    expect(pauses[0]).toBeGreaterThanOrEqual(500)
    expect(pauses[1]).toBeGreaterThanOrEqual(1000)
    await runner.drain()
    expect(await rows(shop)).toMatchObject([{ due_at: null, attempts: 3 }])
    clock.advance(24 * 3_600_000)
    await runner.drain()
    expect([seen.length, faults.length]).toEqual([3, 3])
    // Rescheduling starts the work again.
    await due(context, 'limited', ['x'])
    await runner.drain()
    expect(await rows(shop)).toMatchObject([{ attempts: 1 }])
  })

  test('an unavailable external service is no fault, and its work waits', async () => {
    const { shop, context, faults } = await stage()
    const kinds: WorkKinds = { kind: { run: () => Promise.reject(new Unavailable('no answer')) } }
    await due(context, 'kind', ['x'])
    await new WorkRunner(context, kinds).drain()
    expect(faults).toEqual([])
    expect(await rows(shop)).toMatchObject([{ attempts: 1, last_error: 'no answer' }])
  })

  test('work that is scheduled during its run runs again, once', async () => {
    const { shop, context } = await stage()
    const seen: string[] = []
    const kinds: WorkKinds = {
      kind: {
        async run({ subject }) {
          seen.push(subject)
          if (seen.length === 1) await due(context, 'kind', [subject])
          return done
        },
      },
    }
    await due(context, 'kind', ['x'])
    await new WorkRunner(context, kinds).drain()
    expect(seen).toEqual(['x', 'x'])
    expect(await rows(shop)).toEqual([])
  })

  test('due work is claimed by one of several processes', async () => {
    const { context } = await stage({ workBatch: 7 })
    const { seen, kind } = recorder()
    const subjects = Array.from({ length: 60 }, (_, index) => `s${index}`)
    await due(context, 'kind', subjects)
    const runners = [0, 1, 2].map(() => new WorkRunner(context, { kind }))
    await Promise.all(runners.map((runner) => runner.drain()))
    expect(seen.sort()).toEqual(subjects.sort())
  })

  test('the work of a dead process runs when its lease ends, and not before', async () => {
    const { shop, context, clock } = await stage({ workLeaseMs: 60_000 })
    const dead = new WorkRunner(context, { kind: { run: () => new Promise(() => {}) } })
    await due(context, 'kind', ['x'])
    void dead.drain()
    await expect.poll(async () => (await rows(shop))[0]!.claim, patience).not.toBeNull()
    clock.clear()
    const { seen, kind } = recorder()
    const living = new WorkRunner(context, { kind })
    clock.advance(59_999)
    await living.drain()
    expect(seen).toEqual([])
    clock.advance(1)
    await living.drain()
    expect(seen).toEqual(['x'])
  })

  test('long work keeps its lease', async () => {
    const { shop, context, clock } = await stage({ workLeaseMs: 60_000 })
    const slow = new WorkRunner(context, { kind: { run: () => new Promise(() => {}) } })
    await due(context, 'kind', ['x'])
    void slow.drain()
    const lease = async () => (await rows(shop))[0]!.leased_until
    await expect.poll(lease, patience).toBe(clock.now() + 60_000)
    for (let passed = 0; passed < 180_000; passed += 20_000) {
      clock.advance(20_000)
      await expect.poll(lease, patience).toBe(clock.now() + 60_000)
    }
    const { seen, kind } = recorder()
    await new WorkRunner(context, { kind }).drain()
    expect(seen).toEqual([])
  })

  test('work scheduled in a rolled-back transaction, or unscheduled in it, does not exist', async () => {
    const { shop, context } = await stage()
    const failing = context.db.transact(async (tx) => {
      await schedule(tx, 'kind', 'x', 0)
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    await context.db.transact(async (tx) => {
      await schedule(tx, 'kind', 'y', 0)
      expect(await unschedule(tx, 'kind', 'y')).toBe(true)
      expect(await unschedule(tx, 'kind', 'y')).toBe(false)
      const many = Array.from({ length: 300 }, (_, index) => index)
      await schedule(tx, 'kind', many, 0)
      expect(await unschedule(tx, 'kind', many)).toBe(true)
    })
    expect(await rows(shop)).toEqual([])
  })

  test('work scheduled by this process starts at once, and work of another process after a while', async () => {
    const { context, clock } = await stage({ workPollMs: 10_000 })
    const { seen, kind } = recorder()
    const runner = new WorkRunner(context, { kind })
    const pass = (ms: number, wanted: readonly string[]) =>
      expect
        .poll(() => {
          if (seen.length < wanted.length) clock.advance(ms)
          return seen
        }, patience)
        .toEqual(wanted)
    runner.start()
    await due(context, 'kind', ['mine'])
    await pass(1, ['mine'])
    const theirs = { kind: 'kind', subject: 'theirs', due_at: 0, attempts: 0 }
    await context.db.kysely
      .insertInto('due_work')
      .values({ ...theirs, leased_until: null, claim: null, last_error: null })
      .execute()
    await pass(1000, ['mine', 'theirs'])
    await runner.stop()
    await due(context, 'kind', ['late'])
    clock.advance(60_000)
    expect(seen).toEqual(['mine', 'theirs'])
  })
})
