import { expect, test } from 'vitest'
import { recordTemperatures } from '../../../../cloud/gateway/temperatures.ts'
import { temperatureHandlers } from '../../../../cloud/operations/hubs/temperatures.ts'
import { openCloud } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

const NOW = Date.parse('2026-01-01T00:00:00.000Z')
const MINUTE = 60_000

async function openHistory(open: OpenDatabase) {
  const db = await open()
  const app = await openCloud({ db, handlersOf: temperatureHandlers })
  await openShop(db)
  const key = await app.key(['hubs:read'])
  const read = (query = '', headers: Record<string, string> = {}) =>
    app.call('GET', `/api/v1/owners/hubs/temperatures?hub_id=1${query}`, { key, headers })
  const record = (fridge: number, at: number, celsius: number, min = celsius, max = celsius) =>
    db.transact((tx) =>
      recordTemperatures(tx, 1, [{ kind: 'temperature', fridge_number: fridge, at, celsius, min, max }]),
    )
  const setZone = (timezone: string) =>
    db.kysely.updateTable('hubs').set({ timezone }).where('id', '=', 1).execute()
  return { read, record, setZone }
}

onEachDatabase('the temperatures of a hub', (open) => {
  test('temperatures are stored as minimum, mean and maximum of five minutes, including the present five', async () => {
    const { read, record } = await openHistory(open)
    await record(1, NOW - 7 * MINUTE, 4)
    await record(1, NOW - 2 * MINUTE, 4, 3.8, 4.1)
    await record(1, NOW - MINUTE, 4.5, 4, 4.7)
    await record(2, NOW - MINUTE, -18)
    const { json } = await read()
    expect(json).toEqual([
      { fridge: 1, at: '2025-12-31T23:50:00.000Z', min: 4, mean: 4, max: 4, samples: 1 },
      { fridge: 1, at: '2025-12-31T23:55:00.000Z', min: 3.8, mean: 4.25, max: 4.7, samples: 2 },
      { fridge: 2, at: '2025-12-31T23:55:00.000Z', min: -18, mean: -18, max: -18, samples: 1 },
    ])
    expect((await read('&fridge=2')).json).toMatchObject([{ fridge: 2 }])
  })

  test('temperatures of a fridge that the hub never had are 404 fridge_not_found', async () => {
    const { read, record } = await openHistory(open)
    await record(3, NOW - 25 * 60 * MINUTE, 4)
    for (const fridge of [1, 99]) {
      const answer = await read(`&fridge=${fridge}`)
      expect([answer.status, answer.json]).toMatchObject([404, { error: { code: 'fridge_not_found' } }])
    }
    expect(await read('&fridge=3')).toMatchObject({ status: 200, json: [] })
    expect(await read()).toMatchObject({ status: 200, json: [] })
  })

  test('temperatures of the last day are the default, and at most 31 days can be read', async () => {
    const { read, record } = await openHistory(open)
    await record(1, NOW - 25 * 60 * MINUTE, 4)
    await record(1, NOW - 23 * 60 * MINUTE, 5)
    expect((await read()).json).toMatchObject([{ mean: 5 }])
    expect((await read('&from=2025-12-04T00:00:00Z')).json).toHaveLength(2)
    expect((await read('&to=2025-12-31T00:00:00Z')).json).toMatchObject([{ mean: 4 }])
    expect(await read('&from=2025-11-01T00:00:00Z')).toMatchObject({
      status: 422,
      json: { error: { code: 'validation_error' }, detail: [{ loc: ['query', 'from'] }] },
    })
    expect(await read('&from=2025-03-01T00:00:00Z&to=2025-02-01T00:00:00Z')).toMatchObject({ status: 422 })
    expect(await read('&from=yesterday')).toMatchObject({ status: 422 })
  })

  test('the range is days of the hub’s calendar or timestamps, as in a report', async () => {
    const { read, record, setZone } = await openHistory(open)
    await setZone('Asia/Tokyo')
    // 23:50 on the 30th and 00:10 on the 31st in Tokyo.
    await record(1, Date.parse('2025-12-30T14:50:00Z'), 3)
    await record(1, Date.parse('2025-12-30T15:10:00Z'), 4)
    expect((await read('&from=2025-12-30&to=2025-12-30')).json).toMatchObject([{ mean: 3 }])
    expect((await read('&from=2025-12-31&to=2025-12-31')).json).toMatchObject([{ mean: 4 }])
    expect((await read('&from=2025-12-31&to=2025-12-30T15:20:00Z')).json).toMatchObject([{ mean: 4 }])
    expect(await read('&from=2025-12-01&to=2025-12-31')).toMatchObject({ status: 200 })
    expect(await read('&from=2025-11-30&to=2025-12-31')).toMatchObject({ status: 422 })
    expect(await read('&from=2025-12-31&to=2025-12-30')).toMatchObject({
      status: 422,
      json: { detail: [{ loc: ['query', 'from'], type: 'value_error' }] },
    })
    const offset = await read('&from=2025-12-31T00:00:00%2B09:00')
    expect(offset).toMatchObject({
      status: 422,
      json: { detail: [{ msg: expect.not.stringContaining('offset') }] },
    })
  })

  test('temperatures can be returned as a table', async () => {
    const { read, record } = await openHistory(open)
    await record(1, NOW - MINUTE, 4.5, 4, 4.7)
    const answer = await read('', { Accept: 'text/csv' })
    expect(answer.headers.get('Content-Type')).toBe('text/csv; charset=utf-8')
    expect(answer.json).toBe('fridge,at,min,mean,max,samples\r\n1,2025-12-31T23:55:00.000Z,4,4.5,4.7,1\r\n')
    expect((await read('', { Accept: 'application/json, text/csv' })).json).toHaveLength(1)
  })
})
