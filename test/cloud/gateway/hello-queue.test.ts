import { describe, expect, test } from 'vitest'
import { HelloQueue, type HelloQueueSettings } from '../../../cloud/gateway/hello-queue.ts'
import { backoffMs, type Cancel } from '../../../protocol/model/runtime.ts'
import { seededChance } from '../../simulation/chance.ts'
import { Scheduler } from '../../simulation/scheduler.ts'

const settings: HelloQueueSettings = {
  greetAtOnce: 4,
  greetAtLeast: 4,
  greetTogetherMs: 500,
  greetWithinMs: 2000,
  greetAgainMs: 60_000,
  recallMs: 2000,
  gatherMs: 1000,
}

function setUp(changes: Partial<HelloQueueSettings> = {}) {
  const scheduler = new Scheduler()
  const clock = scheduler.clock(
    scheduler.newLife('queue', () => {}),
    () => 0,
  )
  const random = seededChance(1)
  const queue = new HelloQueue({ clock, random }, { ...settings, ...changes })
  const answered: string[] = []
  const reject: [hello: string, afterMs: number][] = []
  const finish: (() => void)[] = []
  const hailed: number[] = []
  const enter = (hubId: number, session = 's', isPatient = false): void =>
    queue.enter({
      hubId,
      session,
      isPatient,
      answer() {
        answered.push(`${hubId}${session}`)
        return new Promise((resolve) => finish.push(resolve))
      },
      reject: (afterMs) => void reject.push([`${hubId}${session}`, afterMs]),
      hail: () => void hailed.push(hubId),
    })
  return { scheduler, clock, random, queue, answered, reject, hailed, finish, enter }
}

describe('the queue of hellos', () => {
  test('a limited number of hellos is answered at once, the newest first', async () => {
    const { scheduler, enter, answered, finish } = setUp({ greetAtOnce: 2 })
    for (const hubId of [1, 2, 3, 4, 5]) enter(hubId)
    expect(answered).toEqual(['1s', '2s'])
    finish[0]!()
    await scheduler.run(1)
    enter(6)
    finish[1]!()
    await scheduler.run(2)
    expect(answered).toEqual(['1s', '2s', '5s', '6s'])
  })

  test('a replaced hello, and a hello of a closed connection, are not answered', async () => {
    const { scheduler, queue, enter, answered, finish } = setUp({ greetAtOnce: 1 })
    enter(1)
    enter(2, 'a')
    enter(3, 'a')
    enter(2, 'b')
    queue.leave(3, 'another')
    queue.leave(3, 'a')
    queue.leave(2, 'a')
    for (let turn = 0; turn < 4; turn += 1) {
      finish[turn]?.()
      await scheduler.run(turn + 1)
    }
    expect(answered).toEqual(['1s', '2b'])
  })

  test('a hub has one running answer and one waiting hello, so that hellos without a pause leave places to other hubs', async () => {
    const { scheduler, enter, answered, finish } = setUp({ greetAtOnce: 2 })
    enter(1, 'a')
    for (const session of ['b', 'c', 'd']) enter(1, session)
    expect(answered).toEqual(['1a'])
    enter(2)
    enter(3)
    expect(answered).toEqual(['1a', '2s'])
    finish[0]!()
    await scheduler.run(1)
    expect(answered).toEqual(['1a', '2s', '3s'])
    finish[1]!()
    await scheduler.run(2)
    expect(answered).toEqual(['1a', '2s', '3s', '1d'])
  })

  test('hellos with a late turn are rejected with a retry time, the oldest first, spread over the time that all need', async () => {
    const { scheduler, enter, answered, reject } = setUp({ greetAtOnce: 1, greetWithinMs: 1000 })
    enter(0)
    // One answer hangs: each answer seems to need two seconds.
    await scheduler.run(2000)
    for (let hubId = 1; hubId <= 20; hubId += 1) enter(hubId)
    expect(answered).toEqual(['0s'])
    expect(reject.map(([hello]) => hello)).toEqual(Array.from({ length: 20 }, (_, index) => `${index + 1}s`))
    const times = reject.map(([, afterMs]) => afterMs)
    expect(Math.min(...times)).toBeGreaterThanOrEqual(1000)
    expect(Math.max(...times)).toBeLessThanOrEqual(40_000)
    expect(Math.max(...times)).toBeGreaterThan(10_000)
  })

  test('the number of parallel answers grows to its maximum while answers are quick, and falls to its minimum while they are slow', async () => {
    const { scheduler, clock, enter, answered, finish } = setUp({
      greetAtOnce: 6,
      greetAtLeast: 3,
      greetWithinMs: 60_000,
    })
    const underWay = (): number => answered.length - finished
    let finished = 0
    const finishAll = async (ms: number): Promise<void> => {
      await scheduler.run(clock.monotonic() + ms)
      for (const end = answered.length; finished < end; finished += 1) finish[finished]!()
      await scheduler.run(clock.monotonic() + 1)
    }
    for (let hubId = 1; hubId <= 100; hubId += 1) enter(hubId)
    expect(underWay()).toBe(3)
    await finishAll(400)
    expect(underWay()).toBe(6)
    for (let turn = 0; turn < 4; turn += 1) await finishAll(1100)
    expect(underWay()).toBe(3)
  })

  test('rejected hubs are asked for a hello when the queue is empty, the earliest first, within the parallel limit', async () => {
    const { scheduler, clock, enter, reject, hailed, finish } = setUp({
      greetAtOnce: 2,
      greetWithinMs: 1000,
      recallMs: 3000,
    })
    enter(1)
    enter(2)
    // They hang for so long that no other hello would have a turn.
    await scheduler.run(4000)
    for (let hubId = 3; hubId <= 9; hubId += 1) enter(hubId)
    expect(reject).toHaveLength(7)
    expect(hailed).toEqual([])
    finish[0]!()
    await scheduler.run(clock.monotonic() + 1)
    expect(hailed).toEqual([3])
    finish[1]!()
    await scheduler.run(clock.monotonic() + 1)
    expect(hailed).toEqual([3, 4])
    // One hub connects and is answered, the other one has gone.
    enter(4)
    finish[2]!()
    await scheduler.run(clock.monotonic() + 1)
    expect(hailed).toEqual([3, 4, 5])
    // No hub connects, and the next hubs are asked all the same.
    await scheduler.run(clock.monotonic() + 2900)
    expect(hailed).toEqual([3, 4, 5])
    await scheduler.run(clock.monotonic() + 100)
    expect(hailed).toEqual([3, 4, 5, 6])
    await scheduler.run(clock.monotonic() + 6000)
    expect(hailed).toEqual([3, 4, 5, 6, 7, 8, 9])
  })

  test('a single answer does not change the estimated rate of many', async () => {
    const { scheduler, clock, queue, enter, finish } = setUp()
    const before = queue.paceMs
    for (let turn = 0; turn < 10; turn += 1) {
      enter(turn)
      await scheduler.run(clock.monotonic() + 100)
      finish[turn]!()
      await scheduler.run(clock.monotonic() + 1)
    }
    expect(queue.paceMs).toBe(before)
  })

  test('presence checks are answered one after another, and other hellos do not wait for them', async () => {
    const { scheduler, clock, queue, enter, answered } = setUp({ greetAtOnce: 4 })
    enter(1, 's', true)
    await scheduler.run(500)
    enter(2, 's', true)
    await scheduler.run(999)
    expect(answered).toEqual([])
    await scheduler.run(1001)
    expect(answered).toEqual(['2s', '1s'])
    enter(3, 's', true)
    enter(4, 's')
    expect(answered).toEqual(['2s', '1s', '4s', '3s'])
    enter(5, 's', true)
    queue.clear()
    await scheduler.run(clock.monotonic() + 5000)
    expect(answered).toHaveLength(4)
  })

  test('a database that serves one hello at a time is never idle, and each hub is answered once, for any number of hubs', async () => {
    const HUBS = 1000
    const GREETING_MS = 100
    const { scheduler, clock, random, queue } = setUp()
    let database = Promise.resolve()
    let hellos = 0
    const answered = new Map<number, number>()
    for (let hubId = 0; hubId < HUBS; hubId += 1) {
      let cancel: Cancel = () => {}
      let attempt = 0
      const sendAfter = (ms: number): void => {
        cancel()
        cancel = clock.after(ms, say)
      }
      const say = (): void => {
        hellos += 1
        sendAfter(backoffMs(attempt++, { firstMs: 3000, maxMs: 30_000 }, random))
        queue.enter({
          hubId,
          session: 's',
          isPatient: false,
          answer() {
            answered.set(hubId, (answered.get(hubId) ?? 0) + 1)
            database = database.then(() => new Promise((resolve) => clock.after(GREETING_MS, resolve)))
            return database.then(() => cancel())
          },
          reject: sendAfter,
          hail: () => sendAfter(1),
        })
      }
      sendAfter(random.between(1, 20))
    }
    await scheduler.run(1.15 * HUBS * GREETING_MS)
    expect(answered.size).toBe(HUBS)
    const times = [...answered.values()]
    expect(times.reduce((sum, count) => sum + count, 0)).toBeLessThan(1.01 * HUBS)
    expect(hellos).toBeLessThan(5 * HUBS)
  })
})
