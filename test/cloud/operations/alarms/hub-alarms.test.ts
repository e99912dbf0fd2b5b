import { beforeEach, describe, expect, test } from 'vitest'
import { applyAlarmEntries, applySnapshotAlarms } from '../../../../cloud/operations/alarms/hub-alarms.ts'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import type { HubAlarmCode } from '../../../../protocol/model/alarms.ts'
import {
  HubEntry,
  TelemetryEntry,
  type AlarmEntry,
  type SnapshotEntry,
} from '../../../../protocol/mqtt/hub-entries.ts'
import { uuid } from '../../../support/uuid.ts'
import { openCloud } from '../../../world/cloud.ts'
import { onEachDatabase } from '../../../world/database.ts'

const entry = (subject: string, code: HubAlarmCode = 'bin_fault', raised = true): AlarmEntry => ({
  kind: 'alarm',
  at: 1,
  code,
  subject,
  raised,
  detail: '',
})

onEachDatabase('alarms that a hub reports', (open) => {
  let context: CloudContext
  const logged: object[] = []
  beforeEach(async () => {
    const app = await openCloud({ db: await open() })
    context = app.context
    logged.length = 0
    context.log = { ...context.log, warn: (fields) => void logged.push(fields) }
    const { kysely } = context.db
    await kysely
      .insertInto('hub_shelves')
      .values({ hub_id: 1, cabinet: 1, shelf: 2, total_rows: 3, depth: 10 })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  })
  const apply = (...entries: AlarmEntry[]) =>
    context.db.transact((tx) => applyAlarmEntries(tx, context, 1, entries))
  const subjects = async (): Promise<(string | null)[]> =>
    (await context.db.kysely.selectFrom('alarms').select('subject').orderBy('seq').execute()).map(
      ({ subject }) => subject,
    )

  test('alarms of a hub are raised for parts of its layout', async () => {
    await apply(
      entry('row 1/2/3', 'row_blocked'),
      entry('door main', 'door_forced'),
      entry('controller front', 'controller_silent'),
      entry('cabinet 1', 'unexpected_drop'),
      entry('hub', 'clock_wrong'),
    )
    expect(await subjects()).toEqual(['row 1/2/3', 'door main', 'controller front', 'cabinet 1', null])
  })

  test.each([
    's1-1',
    'row 1/2/99',
    'row 4/9/1',
    'cabinet 9',
    'bin 77',
    'fridge 8',
    'door attic',
    'controller ../../etc',
    'controller UPPER',
    '',
    'Hub',
    'bin 1 ',
    'version 1 or 2',
  ])('alarms of a hub are ignored for %j, which is not a part of the layout', async (subject) => {
    await apply(entry(subject))
    expect(await subjects()).toEqual([])
  })

  test('thousands of invented alarms of a hub are one line in the log', async () => {
    await apply(...Array.from({ length: 2000 }, (_, index) => entry(`s1-${index}`)))
    expect(await subjects()).toEqual([])
    expect(logged).toMatchObject([{ hubId: 1, code: 'bin_fault', subject: 's1-0', count: 2000 }])
  })

  test('alarms in a snapshot are judged like single alarms', async () => {
    const snapshot = {
      alarms: [
        { code: 'row_blocked', subject: 'row 1/2/1', detail: 'jam', since: 1 },
        { code: 'row_blocked', subject: 'row 9/9/9', detail: 'jam', since: 1 },
      ],
    } as SnapshotEntry
    await context.db.transact((tx) => applySnapshotAlarms(tx, context, 1, snapshot))
    expect(await subjects()).toEqual(['row 1/2/1'])
  })
})

describe('bounds of a hub’s reports', () => {
  const long = 'x'.repeat(70_000)
  const many = Array.from({ length: 5000 }, () => 1)
  const line = { line_id: 1, dropped: 0, doubtful: 0, bins: [1] }
  const ready = { kind: 'order.ready', order_id: uuid(1), at: 1, bins: [1], lines: [line] }
  const unknown = {
    kind: 'operation.unknown',
    at: 1,
    operation_id: uuid(1),
    device: 'bin-1',
    action: 'open_door',
    reason: 'jam',
    started_at: 1,
    location: null,
    order_id: null,
    line_id: null,
    product_id: null,
  }
  const finished = {
    kind: 'command.finished',
    at: 1,
    command_id: uuid(1),
    outcome: 'executed',
    reason: null,
    data: null,
  }
  const snapshot = { kind: 'snapshot', at: 1, stock: [], states: [], alarms: [] }
  const alarm = { code: 'bin_fault', subject: 'bin 1', detail: '', since: 1 }
  const bin = { of: 'bin', bin: 1, capacity: 4, state: 'free', order_id: null, fault: null, since: 1 }

  test.each<[string, object, object]>([
    ['bins of an order', ready, { bins: many }],
    ['lines of an order', ready, { lines: many.map(() => line) }],
    ['a bin’s number', ready, { bins: [10] }],
    ['a count', ready, { lines: [{ ...line, dropped: 1e9 }] }],
    ['a time', ready, { at: 1e300 }],
    ['a device', unknown, { device: long }],
    ['an action', unknown, { action: long }],
    ['a reason', unknown, { reason: long }],
    ['a command’s reason', finished, { reason: long }],
    ['a command’s data', finished, { data: { text: long } }],
    ['alarms of a snapshot', snapshot, { alarms: many.map(() => alarm) }],
    ['states of a snapshot', snapshot, { states: many.map(() => bin) }],
    [
      'operations of a snapshot',
      snapshot,
      { unknown_operations: Array.from({ length: 20_000 }, () => uuid(1)) },
    ],
    ['a bin’s state', { kind: 'state', at: 1, state: bin }, { state: { ...bin, bin: 5000 } }],
  ])('the schema bounds a hub’s report: %s', (_, sound, change) => {
    expect(HubEntry.safeParse(sound).success).toBe(true)
    expect(HubEntry.safeParse({ ...sound, ...change }).success).toBe(false)
  })

  test('the schema bounds a hub’s report of temperatures', () => {
    const reading = { kind: 'temperature', at: 1, fridge_number: 1, celsius: 4, min: 4, max: 4 }
    expect(TelemetryEntry.safeParse(reading).success).toBe(true)
    for (const change of [{ celsius: 1e9 }, { fridge_number: 10_000 }, { at: 1e300 }])
      expect(TelemetryEntry.safeParse({ ...reading, ...change }).success).toBe(false)
  })
})
