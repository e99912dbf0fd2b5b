import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import {
  applyMaintenanceEntry,
  maintenanceHandlers,
} from '../../../../cloud/operations/maintenance/reports.ts'
import { folderStore } from '../../../../cloud/platform/media/folder-store.ts'
import type { MaintenanceEntry } from '../../../../protocol/mqtt/hub-entries.ts'
import { errorOf, openCloud, type CallOptions, type FormPart } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { emptyFolder, filesIn } from '../../support/media.ts'
import { fileOf, grown, html, jpeg, mp4, png, webm } from '../../support/media-samples.ts'

const reports = '/api/v1/owners/maintenance/reports'
const MIB = 1024 * 1024

const data = {
  hubId: 1,
  name: 'Lift of bin 2',
  submittedBy: 'tech-17',
  serviceType: 'Corrective',
  serviceStartTime: '2026-03-01T09:00:00Z',
  timestamp: '2026-03-01T10:30:00Z',
}
const full = {
  ...data,
  hubTested: 'yes',
  serviceEndTime: '2026-03-01T11:15:00+01:00',
  description: 'The motor was loose.',
  componentsServiced: ['lift', 'door'],
}
const formData = (changes: Record<string, unknown> = {}): FormPart => [
  'formData',
  JSON.stringify({ ...data, ...changes }),
]

interface Filed {
  success: boolean
  message: string
  report: { id: number; hub_id: number; service_type: string; created_at: string; media_assets: Asset[] }
}
interface Asset {
  original_name: string
  bucket_uri: string
  mime_type: string
  size: number
  fieldname: string
  url: string
}

async function workshop(open: OpenDatabase) {
  const folder = emptyFolder()
  const app = await openCloud({
    db: await open(),
    mediaStore: folderStore(folder),
    handlersOf: (context, media) => maintenanceHandlers(context, media),
  })
  const key = await app.key(['maintenance:read', 'maintenance:write'])
  const file = (parts: readonly FormPart[], options: CallOptions = { key }) =>
    app.call('POST', reports, { ...options, form: parts })
  const q = app.context.db.kysely
  return { ...app, folder, owner: key, file, q }
}

onEachDatabase('maintenance reports', (open) => {
  test('a report from a hub is stored once for any number of repetitions, and gets the next number of all reports', async () => {
    const { context, file, call, owner, q } = await workshop(open)
    const entry: MaintenanceEntry = {
      kind: 'maintenance.report',
      at: Date.UTC(2026, 2, 1, 12),
      report_id: '018f3c2a-7b4e-7c1d-9a3b-5c6d7e8f9012',
      name: 'Acceptance of hub 1',
      submitted_by: 'Ann',
      service_type: 'Commissioning',
      started_at: Date.UTC(2026, 2, 1, 9) + 0.25,
      ended_at: Date.UTC(2026, 2, 1, 10),
      hub_tested: 'passed',
      description: 'Result: passed.',
      components_serviced: ['bin 1'],
    }
    await file([formData()])
    for (let time = 1; time <= 3; time++)
      await context.db.transact((tx) => applyMaintenanceEntry(tx, context, 1, entry))
    // The same id at another hub is another report.
    await context.db.transact((tx) => applyMaintenanceEntry(tx, context, 2, entry))
    const { json } = await call('GET', `${reports}?hub_id=1`, { key: owner })
    expect(json).toMatchObject({ total: 2 })
    const [newest] = (json as { logs: Record<string, unknown>[] }).logs
    expect(newest).toMatchObject({
      name: 'Acceptance of hub 1',
      submitted_by: 'Ann',
      hub_tested: 'passed',
      service_start_time: '2026-03-01T09:00:00.000Z',
      components_serviced: ['bin 1'],
      media_assets: [],
    })
    const told = await q
      .selectFrom('events')
      .select('type')
      .where('type', '=', 'maintenance.report_created')
      .where('hub_id', '=', 1)
      .execute()
    expect(told).toHaveLength(2)
  })

  test('a maintenance report is filed with its media, and read unchanged', async () => {
    const { file, call, owner, folder, runtime } = await workshop(open)
    const filed = await file([
      ['media', fileOf(jpeg, 'before.jpg', 'image/jpeg')],
      ['formData', JSON.stringify(full)],
      ['media', fileOf(webm, 'after', 'text/plain')],
    ])
    expect(filed.status).toBe(200)
    const { success, message, report } = filed.json as Filed
    expect([success, typeof message, Object.keys(report)]).toEqual([
      true,
      'string',
      ['id', 'hub_id', 'service_type', 'created_at', 'media_assets'],
    ])
    expect(report).toMatchObject({
      id: 1,
      hub_id: 1,
      service_type: 'Corrective',
      created_at: new Date(runtime.clock.now()).toISOString(),
      media_assets: [
        { original_name: 'before.jpg', mime_type: 'image/jpeg', size: jpeg.length, fieldname: 'media' },
        { original_name: 'after', mime_type: 'video/webm', size: webm.length, fieldname: 'media' },
      ],
    })
    for (const { bucket_uri } of report.media_assets)
      expect(bucket_uri).toMatch(/^store:\/\/maintenance\/1\/[0-9a-f-]{36}\.(jpg|webm)$/)
    const [first] = report.media_assets
    expect(readFileSync(join(folder, first!.bucket_uri.slice('store://'.length)))).toEqual(jpeg)

    const got = await call('GET', `${reports}/1`, { key: owner })
    expect(got.json).toEqual({
      id: 1,
      hub_id: 1,
      name: 'Lift of bin 2',
      service_type: 'Corrective',
      hub_tested: 'yes',
      service_start_time: '2026-03-01T09:00:00.000Z',
      service_end_time: '2026-03-01T10:15:00.000Z',
      description: 'The motor was loose.',
      components_serviced: ['lift', 'door'],
      media_assets: report.media_assets,
      submitted_by: 'tech-17',
      submitted_at: '2026-03-01T10:30:00.000Z',
      created_at: report.created_at,
    })
    expect((await call('GET', reports, { key: owner })).json).toEqual({
      logs: [got.json],
      total: 1,
      page: 1,
      per_page: 20,
    })
  })

  test('a report with a blank title, person or kind of service is refused', async () => {
    const { file } = await workshop(open)
    for (const field of ['name', 'submittedBy', 'serviceType'])
      expect((await file([formData({ [field]: ' ' })])).status).toBe(422)
  })

  test('media and optional fields of a report may be absent, and times without an offset are UTC', async () => {
    const { file, call, owner } = await workshop(open)
    expect(
      (await file([formData({ serviceStartTime: '2026-03-01T09:00:00', hubTested: null })])).status,
    ).toBe(200)
    expect((await call('GET', `${reports}/1`, { key: owner })).json).toMatchObject({
      hub_tested: null,
      service_start_time: '2026-03-01T09:00:00.000Z',
      service_end_time: null,
      description: null,
      components_serviced: [],
      media_assets: [],
    })
  })

  test('the JSON of a report may be a file, as generated clients send it', async () => {
    const { file } = await workshop(open)
    const [, text] = formData()
    const answer = await file([['formData', new File([text], 'blob', { type: 'application/json' })]])
    expect(answer.json).toMatchObject({ success: true, report: { media_assets: [] } })
  })

  test.each([
    ['formData missing', [], 'validation_error', 422],
    ['formData empty', [['formData', '']], 'invalid_json', 400],
    ['formData malformed', [['formData', '{"hubId": 1,']], 'invalid_json', 400],
    ...['[]', '[1]', 'null', '5', '"text"', 'true'].map(
      (text) => [`formData ${text}`, [['formData', text] as FormPart], 'validation_error', 422] as const,
    ),
    ['hubId missing', [['formData', JSON.stringify({ ...data, hubId: undefined })]], 'hub_id_required', 422],
    ['hubId null', [formData({ hubId: null })], 'hub_id_required', 422],
    ['hubId and all other fields missing', [['formData', '{}']], 'hub_id_required', 422],
    ['name missing', [formData({ name: undefined })], 'validation_error', 422],
    ['name empty', [formData({ name: '' })], 'validation_error', 422],
    ['submittedBy missing', [formData({ submittedBy: undefined })], 'validation_error', 422],
    ['serviceType a number', [formData({ serviceType: 5 })], 'validation_error', 422],
    ['serviceStartTime no time', [formData({ serviceStartTime: 'yesterday' })], 'validation_error', 422],
    ['timestamp missing', [formData({ timestamp: undefined })], 'validation_error', 422],
    [
      'serviceEndTime no time',
      [formData({ serviceEndTime: '2026-13-01T00:00:00Z' })],
      'validation_error',
      422,
    ],
    ['componentsServiced no list', [formData({ componentsServiced: 'lift' })], 'validation_error', 422],
    ['text with NUL', [formData({ componentsServiced: ['a\0'] })], 'validation_error', 422],
    ['description too long', [formData({ description: 'x'.repeat(10_001) })], 'validation_error', 422],
    [
      'a file of another type',
      [formData(), ['media', fileOf(html, 'x.png', 'image/png')]],
      'unsupported_media_type',
      415,
    ],
    [
      'an image over 20 MiB',
      [formData(), ['media', fileOf(grown(png, 20 * MIB + 1), 'x.png')]],
      'payload_too_large',
      413,
    ],
    [
      'eleven files',
      [formData(), ...Array.from({ length: 10 }, (): FormPart => ['media', fileOf(png, 'x.png')])],
      'validation_error',
      422,
    ],
    ["another owner's hub", [['media', fileOf(mp4, 'x.mp4')], formData({ hubId: 2 })], 'unauthorized', 403],
    [
      'a hub that is not there',
      [['media', fileOf(mp4, 'x.mp4')], formData({ hubId: 99 })],
      'unauthorized',
      403,
    ],
  ] as [string, FormPart[], string, number][])(
    'a report with a bad field is refused and nothing is stored: %s',
    async (_name, parts, code, status) => {
      const { file, folder, q } = await workshop(open)
      const answer = await file([['media', fileOf(png, 'a.png')], ...parts])
      const { error, detail } = errorOf(answer)
      expect([answer.status, error.code]).toEqual([status, code])
      expect(Array.isArray(detail)).toBe(status === 422)
      expect(filesIn(folder)).toEqual([])
      expect(existsSync(join(folder, 'maintenance/1'))).toBe(false)
      for (const table of ['media', 'maintenance_reports', 'maintenance_media'] as const)
        expect(await q.selectFrom(table).selectAll().execute()).toEqual([])
    },
  )

  test('a problem of a report is named by its place in the JSON', async () => {
    const { file } = await workshop(open)
    const { detail } = errorOf(
      await file([formData({ hubId: undefined, name: 7, componentsServiced: ['a', 2] })]),
    )
    expect(detail).toMatchObject([
      { loc: ['body', 'formData', 'hubId'], type: 'missing' },
      { loc: ['body', 'formData', 'name'], type: 'string_type' },
      { loc: ['body', 'formData', 'componentsServiced', 1], type: 'string_type' },
    ])
  })

  test('a report as a JSON body is 415, and a report without a body lacks the form', async () => {
    const { call, owner } = await workshop(open)
    const json = await call('POST', reports, { key: owner, body: data })
    expect([json.status, errorOf(json).error.code]).toEqual([415, 'unsupported_media_type'])
    const none = await call('POST', reports, { key: owner })
    expect([none.status, errorOf(none).error.code]).toEqual([422, 'validation_error'])
    expect(errorOf(none).detail).toMatchObject([{ loc: ['body', 'formData'], type: 'missing' }])
  })

  test('a report accepts an image of 20 MiB and a video of 100 MiB', async () => {
    const { file } = await workshop(open)
    const answer = await file([
      formData(),
      ['media', fileOf(grown(png, 20 * MIB), 'a.png')],
      ['media', fileOf(grown(mp4, 100 * MIB), 'a.mp4')],
    ])
    expect((answer.json as Filed).report.media_assets.map(({ size }) => size)).toEqual([20 * MIB, 100 * MIB])
  })

  test('reports are visible to callers that reach the hub', async () => {
    const { file, call, key, owner } = await workshop(open)
    const other = await key(['maintenance:read', 'maintenance:write'], { ownerId: 2 })
    await file([formData()])
    await file([formData({ hubId: 2 })], { key: other })
    await file([formData()])
    const idsFor = async (credential: string, query = '') => {
      const { json } = await call('GET', `${reports}${query}`, { key: credential })
      const { logs, total } = json as { logs: { id: number }[]; total: number }
      expect(total).toBeGreaterThanOrEqual(logs.length)
      return logs.map(({ id }) => id)
    }
    expect(await idsFor(owner)).toEqual([3, 1])
    expect(await idsFor(other)).toEqual([2])
    expect(await idsFor(owner, '?hub_id=1')).toEqual([3, 1])
    expect(await idsFor(owner, '?hub_id=')).toEqual([3, 1])
    const code = async (path: string, credential: string) => {
      const answer = await call('GET', path, { key: credential })
      return [answer.status, errorOf(answer).error.code]
    }
    for (const hub of [2, 99])
      expect(await code(`${reports}?hub_id=${hub}`, owner)).toEqual([403, 'unauthorized'])
    for (const query of ['hub_id=x', 'page=0', 'per_page=0', 'per_page=101', 'per_page=x'])
      expect(await code(`${reports}?${query}`, owner)).toEqual([422, 'validation_error'])
    for (const id of [2, 99]) expect(await code(`${reports}/${id}`, owner)).toEqual([404, 'not_found'])
    const elsewhere = await key(['maintenance:read'], { hubs: [7] })
    expect(await idsFor(elsewhere)).toEqual([])
    expect(await code(`${reports}/1`, elsewhere)).toEqual([403, 'unauthorized'])
    expect(await code(`${reports}/2`, elsewhere)).toEqual([404, 'not_found'])
    expect(await code(`${reports}?hub_id=1`, elsewhere)).toEqual([403, 'unauthorized'])
  })

  test('technicians of the hub can file and read reports with their own token', async () => {
    const { file, call, issuer, runtime, q } = await workshop(open)
    await grantRole(q, runtime, { identity: 'tess', role: 'technician', hubs: [1] })
    const token = await issuer.token({ sub: 'tess' })
    expect((await file([formData()], { token })).status).toBe(200)
    const elsewhere = await file([formData({ hubId: 2 })], { token })
    expect([elsewhere.status, errorOf(elsewhere).error.code]).toEqual([403, 'unauthorized'])
    expect((await call('GET', reports, { token })).json).toMatchObject({ total: 1, logs: [{ id: 1 }] })
    const stranger = await issuer.token({ sub: 'eve' })
    expect(errorOf(await file([formData()], { token: stranger })).error.code).toBe('scope_missing')
  })

  test('reports are listed in pages, newest first', async () => {
    const { file, call, owner } = await workshop(open)
    for (let count = 0; count < 5; count += 1) await file([formData()])
    const pages: unknown[] = []
    for (const page of [1, 2, 3, 4]) {
      const { json } = await call('GET', `${reports}?page=${page}&per_page=2`, { key: owner })
      const { logs, ...rest } = json as { logs: { id: number }[] }
      expect(rest).toEqual({ total: 5, page, per_page: 2 })
      pages.push(logs.map(({ id }) => id))
    }
    expect(pages).toEqual([[5, 4], [3, 2], [1], []])
  })
})
