import { appendFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import type { FaultRequest } from '../../simulator/faults/faults.ts'
import { Plant } from '../world/plant.ts'

/**
 * Failing sensors from the line to the owner: the time until detection and until sales stop, and the number
 * of alarms, events and bytes. With `SENSOR_TIMELINE=FILE` the table is appended to that file.
 */

const SECOND = 1000
const MINUTE = 60 * SECOND
const STEP = 20 * SECOND
vi.setConfig({ testTimeout: 300_000 })

interface Expected {
  faults: FaultRequest[]
  minutes: number
  /** Latest minute in which the owner reads it; undefined: never. */
  unknownBy?: number
  shutoffBy?: number
  alarms: string[]
}

const fridge = 'fridge-1'
const cases: Record<string, Expected> = {
  'frozen probe, nothing else changes': {
    faults: [{ type: 'frozen_probe', target: fridge }],
    minutes: 40,
    alarms: [],
  },
  'broken probe': {
    faults: [{ type: 'broken_probe', target: fridge }],
    minutes: 36,
    unknownBy: 6,
    shutoffBy: 31,
    alarms: ['fridge_unreadable', 'health_shutoff'],
  },
  'outliers among readings': {
    faults: [{ type: 'probe_outliers', target: fridge, probability: 0.2 }],
    minutes: 40,
    alarms: [],
  },
  'nothing but outliers': {
    faults: [{ type: 'probe_outliers', target: fridge, probability: 1 }],
    minutes: 36,
    unknownBy: 6,
    shutoffBy: 31,
    alarms: ['fridge_unreadable', 'health_shutoff'],
  },
  'silent controller': {
    faults: [{ type: 'silent_port', target: 'cold' }],
    minutes: 36,
    unknownBy: 1,
    shutoffBy: 31,
    alarms: ['controller_silent', 'fridge_unreadable', 'health_shutoff'],
  },
  'blinking contact of a door': {
    faults: [{ type: 'blinking_contact', target: 'main' }],
    minutes: 10,
    unknownBy: 1,
    alarms: ['door_left_open'],
  },
  'blinking light barrier': {
    faults: [{ type: 'blinking_contact', target: 'bin-1' }],
    minutes: 10,
    alarms: ['bin_blocked'],
  },
}

interface Health {
  fridges: { status: string; temperature: number | null }[]
  door_status: string
}

const health = async (plant: Plant): Promise<Health> =>
  (await plant.call('GET', 'hubs/get_hub_health/?hub_id=1')).json as Health

/** Data that the cloud has stored because of the hub's reports. */
async function cost(plant: Plant): Promise<{ entries: number; events: number; bytes: number }> {
  const events = await plant.db.kysely.selectFrom('events').select('data').execute()
  const stream = await plant.db.kysely
    .selectFrom('hub_streams')
    .select('cursor')
    .where('stream', '=', 'ledger')
    .executeTakeFirst()
  const bytes = events.reduce((sum, { data }) => sum + data.length, 0)
  return { entries: stream?.cursor ?? 0, events: events.length, bytes }
}

test.each(Object.entries(cases))('a sensor fault is detected in time: %s', async (name, expected) => {
  const plant = await Plant.open()
  await plant.run(5 * MINUTE)
  const before = await cost(plant)
  const startedAt = plant.time
  const isDoor = expected.faults.some(({ target }) => target === 'main')
  for (const fault of expected.faults) plant.room.hub.faults.raise(fault)
  let unknownAt: number | undefined
  let shutoffAt: number | undefined
  while (plant.time - startedAt < expected.minutes * MINUTE) {
    await plant.run(STEP)
    const { fridges, door_status } = await health(plant)
    const minutes = (plant.time - startedAt) / MINUTE
    const isUnknown = isDoor ? door_status === 'unknown' : fridges[0]!.temperature === null
    if (isUnknown) unknownAt ??= minutes
    if (plant.hub.hub!.core.health().fridges[0]!.shutoff) shutoffAt ??= minutes
  }
  const after = await cost(plant)
  const alarms = await plant.db.kysely
    .selectFrom('alarms')
    .select(['kind', 'count'])
    .where('kind', '!=', 'no_bin_available')
    .orderBy('seq')
    .execute()
  const spent = {
    entries: after.entries - before.entries,
    events: after.events - before.events,
    bytes: after.bytes - before.bytes,
  }
  const line = [
    name,
    unknownAt?.toFixed(1) ?? '–',
    shutoffAt?.toFixed(1) ?? '–',
    alarms.map(({ kind }) => kind).join(', ') || '–',
    String(spent.events),
    String(spent.entries),
    String(spent.bytes),
  ]
  const file = process.env['SENSOR_TIMELINE']
  if (file) appendFileSync(file, `| ${line.join(' | ')} |\n`)

  expect(alarms.map(({ kind }) => kind).toSorted()).toEqual(expected.alarms.toSorted())
  if (expected.unknownBy === undefined) expect(unknownAt).toBeUndefined()
  else expect(unknownAt).toBeLessThanOrEqual(expected.unknownBy)
  if (expected.shutoffBy === undefined) expect(shutoffAt).toBeUndefined()
  else expect(shutoffAt).toBeLessThanOrEqual(expected.shutoffBy)
  expect(spent.events).toBeLessThanOrEqual(12)
  expect(spent.entries).toBeLessThanOrEqual(12)
  expect(spent.bytes).toBeLessThan(20_000)
})
