import { beforeEach, describe, expect, test } from 'vitest'
import type { AboutHub } from '../../../cloud/events/alarms/about-sales.ts'
import {
  acknowledgeAlarm,
  alarmWork,
  clearAlarm,
  raiseAlarm,
  reconcileAlarms,
  type Incident,
  type Raised,
} from '../../../cloud/events/alarms/alarms.ts'
import type { CloudContext } from '../../../cloud/platform/context.ts'
import { WorkRunner } from '../../../cloud/platform/work/runner.ts'
import type { Alarm } from '../../../protocol/contract/owner-alarms.ts'
import { alarmKindNames, alarmKinds } from '../../../protocol/model/alarms.ts'
import { openCloud, type TestCloud } from '../../world/cloud.ts'
import { onEachDatabase } from '../../world/database.ts'
import { openShop } from '../../world/shop.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const door: Incident<AboutHub> = { hubId: 1, kind: 'door_forced', subject: 'door main' }
const row: Incident<AboutHub> = { hubId: 1, kind: 'row_blocked', subject: 'row 1/1/1' }

onEachDatabase('alarms', (open) => {
  let app: TestCloud
  let context: CloudContext
  let work: WorkRunner

  beforeEach(async () => {
    app = await openCloud({ db: await open() })
    context = app.context
    work = new WorkRunner(context, alarmWork(context))
  })

  const raise = (raised: Raised) => context.db.transact((tx) => raiseAlarm(tx, context, raised))
  const clear = (incident: Incident) => context.db.transact((tx) => clearAlarm(tx, context, incident))
  const pass = async (ms: number): Promise<void> => {
    app.runtime.clock.advance(ms)
    await work.drain()
  }
  const rows = () => context.db.kysely.selectFrom('alarms').selectAll().orderBy('seq').execute()
  const told = async (): Promise<[type: string, alarm: Alarm][]> =>
    (await context.db.kysely.selectFrom('events').select(['type', 'data']).orderBy('seq').execute()).map(
      ({ type, data }) => [type, JSON.parse(data) as Alarm],
    )
  const types = async (): Promise<string[]> => (await told()).map(([type]) => type)

  test('a problem that is detected many times is reported once', async () => {
    for (let time = 0; time < 3; time += 1) await raise(row)
    expect(await types()).toEqual(['alarm.raised'])
    expect(await rows()).toMatchObject([{ hub_id: 1, owner_id: 1, kind: 'row_blocked', count: 1 }])
  })

  test('a problem that several processes detect at once is one alarm', async () => {
    await Promise.all(Array.from({ length: 8 }, () => raise(row)))
    expect(await rows()).toHaveLength(1)
    expect(await types()).toEqual(['alarm.raised'])
  })

  test('an alarm that a person resolved ends at once, and a recurrence long after that is another alarm', async () => {
    await raise(row)
    await clear(row)
    expect(await types()).toEqual(['alarm.raised', 'alarm.cleared'])
    await pass(context.settings.alarmFlapMs)
    await raise(row)
    expect((await rows()).map(({ cleared_at }) => cleared_at === null)).toEqual([false, true])
  })

  test.each(alarmKindNames)(
    'a problem of the kind %s that comes and goes 40 times is one alarm',
    async (kind) => {
      const incident = { hubId: 1, kind, subject: 'bin 1', soldBy: 1 }
      for (let time = 0; time < 40; time += 1) {
        await raise(incident)
        await pass(SECOND)
        await clear(incident)
        await pass(SECOND)
      }
      const [alarm, ...others] = await rows()
      expect(others).toEqual([])
      expect(alarm!.count).toBe(40)
      expect((await types()).length).toBeLessThanOrEqual(5)
      await pass(context.settings.alarmFlapMs)
      const isPersons = alarmKinds[kind].ends === 'when_acknowledged'
      expect((await rows()).map(({ cleared_at }) => cleared_at === null)).toEqual([isPersons])
    },
  )

  test('a problem that returns after its alarm was acknowledged is reported again, once', async () => {
    const replaced: Incident<AboutHub> = {
      hubId: 1,
      kind: 'controller_replaced',
      subject: 'controller front',
    }
    await raise(replaced)
    const [{ id } = { id: '' }] = await rows()
    await context.db.transact((tx) => acknowledgeAlarm(tx, context, id, 'key:a'))
    await raise(replaced)
    expect(await rows()).toMatchObject([{ count: 2, cleared_at: null, acknowledged_by: null }])
  })

  describe('a hub with many open alarms', () => {
    const open = async (): Promise<number> =>
      (await rows()).filter(({ cleared_at }) => cleared_at === null).length
    const flood = async (count: number): Promise<void> => {
      await context.db.transact(async (tx) => {
        for (let number = 1; number <= count; number += 1)
          await raiseAlarm(tx, context, { ...row, subject: `row 1/1/${number}` })
      })
    }

    test('a hub has at most the configured number of open alarms, and people are notified of no more', async () => {
      context.settings.alarmsPerHub = 20
      await flood(50)
      expect(await open()).toBe(18)
      expect(await types()).toHaveLength(18)
    })

    test('a hub at its limit of alarms still raises alarms about the whole hub', async () => {
      context.settings.alarmsPerHub = 20
      await flood(50)
      for (const kind of ['hub_silent', 'store_full', 'clock_wrong'] as const)
        await raise({ hubId: 1, kind, subject: null })
      expect(await open()).toBe(20)
    })

    test('the alarms of a hub take no place from another hub, and free their places when they end', async () => {
      context.settings.alarmsPerHub = 20
      await flood(50)
      await raise({ ...row, hubId: 2 })
      expect(await open()).toBe(19)
      await clear({ ...row, subject: 'row 1/1/1' })
      await raise({ ...row, subject: 'row 1/1/50' })
      expect(await open()).toBe(19)
    })

    test('alarms about sales are raised whatever number of alarms a hub has, and take no place from others', async () => {
      context.settings.alarmsPerHub = 20
      await flood(50)
      for (let order = 1; order <= 30; order += 1)
        await raise({ hubId: 1, kind: 'refund_failed', subject: `order ${order}`, soldBy: 1 })
      await raise({ hubId: 1, kind: 'hub_silent', subject: null })
      expect(await open()).toBe(18 + 30 + 1)
    })

    test('one line of the log counts the refused alarms of a transaction, without undone alarms', async () => {
      context.settings.alarmsPerHub = 10
      const lines: unknown[] = []
      context.log = { ...context.log, warn: (about: unknown) => void lines.push(about) }
      await flood(9)
      lines.length = 0
      await context.db.transact(async (tx) => {
        const refuse = (number: number) => raiseAlarm(tx, context, { ...row, subject: `row 2/1/${number}` })
        const undone = tx.savepoint(async () => {
          await refuse(1)
          throw new Error('undone')
        })
        await expect(undone).rejects.toThrow('undone')
        for (const number of [2, 3]) await refuse(number)
      })
      expect(lines).toMatchObject([{ hubId: 1, subject: 'row 2/1/2', refused: 2 }])
    })
  })

  test('problems of two rows, two hubs or two kinds are separate alarms', async () => {
    await raise(row)
    await raise({ ...row, subject: 'row 1/1/2' })
    await raise({ ...row, hubId: 2 })
    await raise({ ...row, kind: 'bin_blocked' })
    await clear(row)
    expect((await rows()).map(({ cleared_at }) => cleared_at === null)).toEqual([false, true, true, true])
  })

  test('an alarm that was never raised cannot end', async () => {
    await clear(row)
    expect(await types()).toEqual([])
  })

  describe('flapping alarms', () => {
    test('a flapping alarm ends when its problem has been gone for a while', async () => {
      await raise(door)
      await clear(door)
      expect(await types()).toEqual(['alarm.raised'])
      await pass(context.settings.alarmClearMs - 1)
      expect(await types()).toEqual(['alarm.raised'])
      await pass(1)
      expect(await types()).toEqual(['alarm.raised', 'alarm.cleared'])
      await pass(MINUTE)
      expect(await types()).toHaveLength(2)
    })

    test('a problem that returns earlier is the same alarm, and increases its count', async () => {
      await raise(door)
      for (let time = 0; time < 5; time += 1) {
        await clear(door)
        await pass(context.settings.alarmClearMs - 1)
        await raise(door)
      }
      await pass(MINUTE)
      expect(await types()).toEqual(['alarm.raised'])
      expect(await rows()).toMatchObject([{ count: 6, cleared_at: null, quiet_since: null }])
    })

    test.each([5, 15, 45, 90])('10 minutes of flapping, %i s each way, are one alarm', async (seconds) => {
      for (let past = 0; past < 10 * MINUTE; past += 2 * seconds * SECOND) {
        await raise(door)
        await pass(seconds * SECOND)
        await clear(door)
        await pass(seconds * SECOND)
      }
      await pass(context.settings.alarmFlapMs)
      const [alarm, ...others] = await rows()
      expect(others).toEqual([])
      expect(alarm!.cleared_at).not.toBeNull()
      // After the first end people are notified once of the return, and again only after the next end.
      const isSlow = seconds * SECOND > context.settings.alarmClearMs
      const [raised, cleared] = ['alarm.raised', 'alarm.cleared']
      expect(await types()).toEqual(isSlow ? [raised, cleared, raised, cleared] : [raised, cleared])
    })

    test('a problem that returns long after its end is another alarm', async () => {
      await raise(door)
      await clear(door)
      await pass(context.settings.alarmClearMs)
      await pass(context.settings.alarmFlapMs)
      await raise(door)
      expect(await rows()).toHaveLength(2)
    })
  })

  test('an alarm that is detected only by chance ends when it was not detected for long', async () => {
    const conflict: Incident<AboutHub> = { hubId: 1, kind: 'identity_conflict', subject: null }
    for (let time = 0; time < 20; time += 1) {
      await raise(conflict)
      await clear(conflict)
      await pass(30 * SECOND)
    }
    expect(await types()).toEqual(['alarm.raised'])
    await pass(context.settings.alarmFlapMs)
    expect(await types()).toEqual(['alarm.raised', 'alarm.cleared'])
  })

  test('the alarm of a silent hub becomes critical once, but not if the hub reports in time', async () => {
    const silent: Incident<AboutHub> = { hubId: 1, kind: 'hub_silent', subject: null }
    await raise(silent)
    await raise({ ...silent, hubId: 2 })
    await pass(context.settings.hubSilentCriticalMs - context.settings.alarmClearMs - SECOND)
    await clear({ ...silent, hubId: 2 })
    await pass(context.settings.alarmClearMs)
    await pass(SECOND)
    await pass(context.settings.hubSilentCriticalMs)
    expect((await told()).map(([type, { hub_id, severity }]) => [type, hub_id, severity])).toEqual([
      ['alarm.raised', 1, 'warning'],
      ['alarm.raised', 2, 'warning'],
      ['alarm.cleared', 2, 'warning'],
      ['alarm.raised', 1, 'critical'],
    ])
  })

  test('a silent hub that returns and is silent again is a warning first', async () => {
    const silent: Incident<AboutHub> = { hubId: 1, kind: 'hub_silent', subject: null }
    await raise(silent)
    await pass(context.settings.hubSilentCriticalMs)
    await clear(silent)
    await pass(context.settings.alarmClearMs)
    await raise(silent)
    await pass(SECOND)
    expect((await told()).map(([type, { severity }]) => [type, severity])).toEqual([
      ['alarm.raised', 'warning'],
      ['alarm.raised', 'critical'],
      ['alarm.cleared', 'critical'],
      ['alarm.raised', 'warning'],
      ['alarm.raised', 'critical'],
    ])
  })

  test('an acknowledged alarm stays open until its problem is resolved, and a second acknowledgement changes nothing', async () => {
    await raise(row)
    const [{ id } = { id: '' }] = await rows()
    const acknowledge = (by: string) => context.db.transact((tx) => acknowledgeAlarm(tx, context, id, by))
    await acknowledge('key:a')
    await acknowledge('key:b')
    expect(await rows()).toMatchObject([{ acknowledged_by: 'key:a', cleared_at: null }])
    expect(await types()).toEqual(['alarm.raised', 'alarm.acknowledged'])
    await clear(row)
    expect(await types()).toEqual(['alarm.raised', 'alarm.acknowledged', 'alarm.cleared'])
  })

  test('the alarm of an irreversible event ends when a person acknowledges it', async () => {
    await raise({ hubId: 1, kind: 'controller_replaced', subject: 'controller front' })
    const [{ id } = { id: '' }] = await rows()
    await context.db.transact((tx) => acknowledgeAlarm(tx, context, id, 'key:a'))
    expect(await types()).toEqual(['alarm.raised', 'alarm.acknowledged', 'alarm.cleared'])
  })

  test('a complete list of problems raises missing alarms and ends all others', async () => {
    await raise(row)
    await raise({ ...row, hubId: 2 })
    await context.db.transact((tx) =>
      reconcileAlarms(tx, context, { hubId: 1, kind: 'row_blocked' }, [{ subject: 'row 1/1/2' }]),
    )
    expect(
      (await rows()).map(({ hub_id, subject, cleared_at }) => [hub_id, subject, cleared_at === null]),
    ).toEqual([
      [1, 'row 1/1/1', false],
      [2, 'row 1/1/1', true],
      [1, 'row 1/1/2', true],
    ])
  })

  test('an alarm of a rolled-back transaction is not published', async () => {
    const failing = context.db.transact(async (tx) => {
      await raiseAlarm(tx, context, row)
      throw new Error('undone')
    })
    await expect(failing).rejects.toThrow('undone')
    expect(await types()).toEqual([])
    expect(await rows()).toEqual([])
  })
})

onEachDatabase('the message of an alarm', (open) => {
  test('the message of an alarm names the product of its row or its own product, and the subject stays unchanged', async () => {
    const { context } = await openShop(await open())
    const { db } = context
    const raise = (raised: Raised) => db.transact((tx) => raiseAlarm(tx, context, raised))
    await raise({ hubId: 1, kind: 'row_blocked', subject: 'row 1/1/1', detail: 'jam' })
    await raise({ hubId: 1, kind: 'row_blocked', subject: 'row 4/9/9' })
    await raise({ hubId: 1, kind: 'stock_low', subject: 'product 2' })
    await raise({ hubId: 1, kind: 'bin_fault', subject: 'bin 1' })
    const rows = await db.kysely.selectFrom('alarms').select(['subject', 'message']).orderBy('seq').execute()
    expect(rows).toEqual([
      {
        subject: 'row 1/1/1',
        message: 'Row 1/1/1 (Product 1) is blocked and sells nothing (jam).',
      },
      { subject: 'row 4/9/9', message: 'Row 4/9/9 is blocked and sells nothing.' },
      { subject: 'product 2', message: 'Product 2 (Product 2) is nearly sold out.' },
      { subject: 'bin 1', message: 'Bin 1 has failed to move.' },
    ])
  })
})
