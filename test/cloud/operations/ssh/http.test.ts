import { beforeEach, describe, expect, test } from 'vitest'
import { managementHandlers } from '../../../../cloud/operations/ssh/bin-changes.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import { openCloud, type TestCloud } from '../../../world/cloud.ts'
import { emptySqlite } from '../../../world/database.ts'
import { modelHub, register, type ModelHub } from './model-hub.ts'

let app: TestCloud
let hub: ModelHub
let key: string

beforeEach(async () => {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  hub = modelHub()
  app = await openCloud({ db, handlersOf: (context) => managementHandlers({ context, remote: hub.remote }) })
  await register(db)
  key = await app.key(['controls:write'])
})

const post = (
  name: 'enable_bin_ssh' | 'disable_bin_ssh',
  query: string,
  headers: Record<string, string> = {},
) => app.call('POST', `/api/v1/owners/controls/${name}?${query}`, { key, headers })

describe('O §4.6: enable_bin_ssh, disable_bin_ssh', () => {
  const results = {
    stop_result: { exit_code: 0, duration_ms: 5, output: 'stopped' },
    start_result: { exit_code: 0, duration_ms: 5, output: 'started' },
  }

  test('a successful bin change returns the complete answer', async () => {
    hub.disabled.add(4)
    expect(await post('disable_bin_ssh', 'bin=2&hub=1')).toMatchObject({
      status: 200,
      json: {
        status: 'ok',
        result: {
          success: true,
          hub_id: 1,
          bin_number: 2,
          enabled_bin: 2,
          disabled_bins: [2, 4],
          ...results,
        },
      },
    })
    expect((await post('enable_bin_ssh', 'bin=2&hub=1')).json).toEqual({
      status: 'ok',
      result: { success: true, hub_id: 1, bin_number: 2, enabled_bin: 2, disabled_bins: [4], ...results },
    })
  })

  test.each([
    ['bin=9&hub=1', 'refused', 'validation_error', 9],
    ['bin=2&hub=1', 'unreachable', 'connection_error', 2],
    ['bin=2&hub=1', 'lost after', 'timeout', 2],
    ['bin=2&hub=1', 'not started', 'command_failed', 2],
  ] as const)('a failed bin change is a 200 too: %s, %s', async (query, how, error_type, bin_number) => {
    hub.next(how)
    const answer = await post('disable_bin_ssh', query)
    expect(answer).toMatchObject({
      status: 200,
      json: { status: 'error', result: { success: false, error_type, hub_id: 1, bin_number } },
    })
    expect((answer.json as { result: { error: string } }).result.error).not.toBe('')
  })

  test.each([
    ['hub=1', 1, null],
    ['bin=1', null, 1],
    ['', null, null],
    ['bin=&hub=1', 1, null],
    ['bin=1.5&hub=1', 1, null],
    ['bin=1e3&hub=1', 1, null],
    ['bin=-1&hub=1', 1, null],
    ['bin=x&hub=y', null, null],
    ['bin=1&hub=0', 0, 1],
    ['bin=99999999999999999999&hub=1', 1, null],
  ])('an invalid bin change is a validation_error within the 200: %j', async (query, hub_id, bin_number) => {
    expect(await post('enable_bin_ssh', query)).toMatchObject({
      status: 200,
      json: {
        status: 'error',
        result: { success: false, error_type: 'validation_error', hub_id, bin_number },
      },
    })
    expect(hub.calls).toEqual([])
  })
})
