import { describe, expect, it } from 'vitest'
import { bench, location } from '../support/local-api-bench.ts'
import { result, TOKEN, OPERATION } from '../../world/local-core.ts'

describe('the local API', () => {
  it('the local API returns the hub’s state without the cloud', async () => {
    const { status, json } = await bench().send('GET', '/api/state')
    expect(status).toBe(200)
    expect(json).toMatchObject({
      hub_id: 1,
      stock: [{ product_id: 7, quantity: 4 }],
      unknown_operations: [],
      dead_letters: [],
      links: [{ controller: 'bins', up: false }],
      foreign_controllers: ['bins'],
      sync: { phase: 'waiting' },
    })
  })

  it('the log has one line about a caller that guesses tokens', async () => {
    const { send, app, logged } = bench()
    for (let guess = 0; guess < 500; guess += 1) await send('GET', '/api/state', undefined, `guess-${guess}`)
    await app.request('/api/state')
    expect(logged).toEqual([{ refused: 'local_token', caller: '192.0.2.9', path: '/api/state', count: 1 }])
  })

  it('a missing, wrong or shortened token is 401 on every path of /api', async () => {
    const { app, send, asked } = bench()
    for (const [method, path] of [
      ['GET', '/api/state'],
      ['POST', '/api/bins/1/open'],
      ['POST', '/api/doors/main/unlock'],
      ['POST', '/api/stock/count'],
      ['GET', '/api/nothing'],
    ] as const) {
      for (const token of ['', 'a-token-of-this', 'a-token-of-this-tesu', 'a-token-of-this-test-'])
        expect(await send(method, path, method === 'POST' ? {} : undefined, token)).toMatchObject({
          status: 401,
          json: { error: { code: 'authentication_required' } },
        })
      expect((await app.request(path, { method })).status).toBe(401)
    }
    expect(asked).toEqual([])
  })

  it('a request under a foreign host name is refused, with or without the token', async () => {
    const { app } = bench()
    const ask = async (host: string) =>
      (await app.request('/', { headers: { host, authorization: `Bearer ${TOKEN}` } })).status
    expect([
      await ask('evil.example:8081'),
      await ask('hub1.local:8081'),
      await ask('10.0.0.7:8081'),
    ]).toEqual([403, 200, 200])
  })

  it('the local API moves a bin and returns the result', async () => {
    const { send, asked } = bench()
    expect(await send('POST', '/api/bins/2/raise')).toEqual({
      status: 200,
      json: { ok: true, door: 'open', duration_ms: 900 },
    })
    expect(asked).toEqual([['operate', { name: 'raise_bin', bin: 2 }]])
    for (const outcome of ['refused', 'failed', 'unknown'] as const) {
      const { send: refused } = bench({
        operate: (_body, reply) => reply(result(outcome, 'interlock', null)),
      })
      expect(await refused('POST', '/api/bins/1/open', {})).toMatchObject({
        status: outcome === 'refused' ? 409 : 502,
        json: { error: { code: outcome, details: { reason: 'interlock' } } },
      })
    }
  })

  it('the local API waits for a motion only for a limited time', async () => {
    const { send, runtime } = bench({ operate: () => {} })
    const answer = send('POST', '/api/bins/1/lower')
    await new Promise((resolve) => void setImmediate(resolve))
    runtime.clock.advance(30_000)
    expect(await answer).toMatchObject({ status: 504, json: { error: { code: 'timeout' } } })
  })

  it('the local API waits for all motions of a door that opens and closes repeatedly', async () => {
    let finish = (): void => {}
    const { send, runtime } = bench({
      operate: (_body, reply) => {
        finish = () => reply(result('executed', null, { cycles_completed: 3 }))
      },
    })
    const answer = send('POST', '/api/bins/1/cycle', { cycles: 3 })
    await new Promise((resolve) => void setImmediate(resolve))
    runtime.clock.advance(5 * 30_000)
    finish()
    expect(await answer).toMatchObject({ status: 200, json: { cycles_completed: 3 } })
  })

  it('the local API can request a snapshot of the cloud, or drop a dead letter', async () => {
    const { send, asked } = bench()
    const ok = { status: 200, json: { ok: true } }
    expect(await send('POST', '/api/dead-letters/replay')).toEqual(ok)
    expect(await send('POST', '/api/dead-letters/7/drop')).toEqual(ok)
    expect(asked).toEqual([['replayDeadLetters'], ['dropDeadLetter', 7]])
  })

  it('the local API resolves operations, counts, restocks, unlocks and takes over boards', async () => {
    const { send, asked, logged } = bench()
    const ok = { status: 200, json: { ok: true } }
    expect(await send('POST', `/api/operations/${OPERATION}/settle`, { happened: true })).toEqual(ok)
    expect(await send('POST', '/api/stock/count', { location, units: 0 })).toEqual(ok)
    expect(await send('POST', '/api/stock/restock', { location, units: 12 })).toEqual(ok)
    expect(await send('POST', '/api/doors/fridge_1_left/unlock', { for_ms: 60_000 })).toEqual(ok)
    expect(await send('POST', '/api/controllers/bins/take-over')).toEqual(ok)
    expect(asked).toEqual([
      ['settle', OPERATION, true],
      ['count', location, 0],
      ['restock', location, 12],
      ['unlockDoor', 'fridge_1_left', 60_000],
      ['takeOverController', 'bins'],
    ])
    const by = 'shared token'
    const place = { cabinet: 1, shelf: 2, row: 3 }
    expect(logged).toEqual([
      { operation: OPERATION, happened: true, ok: true, by },
      { ...place, counted: 0, ok: true, by },
      { ...place, restocked: 12, ok: true, by },
      { door: 'fridge_1_left', forMs: 60_000, ok: true, by },
      { controller: 'bins', ok: true, by },
    ])
  })

  it('the local API returns the hub’s reason for a refusal', async () => {
    for (const [reason, status, code] of [
      ['not_found', 404, 'not_found'],
      ['not_unknown', 409, 'not_unknown'],
      ['invalid', 422, 'invalid_request'],
      ['unavailable', 503, 'unavailable'],
    ] as const) {
      const { send } = bench({ settle: () => ({ ok: false, reason }) })
      const answer = await send('POST', `/api/operations/${OPERATION}/settle`, { happened: false })
      expect(answer).toMatchObject({ status, json: { error: { code } } })
    }
  })

  it.each([
    ['/api/stock/count', { location, unit: 1 }, 422],
    ['/api/stock/restock', { location: { cabinet: 9, shelf: 1, row: 1 }, units: 1 }, 422],
    ['/api/doors/main/unlock', { for_ms: 1e12 }, 422],
    ['/api/doors/cellar/unlock', {}, 422],
    ['/api/operations/17/settle', { happened: true }, 422],
    [`/api/operations/${OPERATION}/settle`, '{happened', 400],
    [`/api/operations/${OPERATION}/settle`, '[]', 422],
    ['/api/bins/5/open', {}, 422],
    ['/api/controllers/Bins/take-over', {}, 422],
    ['/api/bins/1/open', { now: true }, 422],
    ['/api/dead-letters/0/drop', {}, 422],
    ['/api/dead-letters/x/drop', {}, 422],
    ['/api/dead-letters/replay', { all: true }, 422],
    ['/api/stock/count', ' '.repeat(20_000), 413],
    ['/api/bins/1/fly', {}, 404],
  ])('the request %s with %j is refused', async (path, body, status) => {
    const { send, asked } = bench()
    const answer = await send('POST', path, body)
    expect(answer.status).toBe(status)
    expect(answer.json).toHaveProperty('error.code')
    expect(asked).toEqual([])
  })

  it('the answer to an internal error hides its cause', async () => {
    const { send } = bench({
      orders: () => {
        throw new Error('a secret of the journal')
      },
    })
    const { status, json } = await send('GET', '/api/state')
    expect(status).toBe(500)
    expect(JSON.stringify(json)).not.toContain('secret')
  })

  it('a count or a restock that was entered at another hub is refused', async () => {
    const { send, asked } = bench()
    const entry = { location, units: 3 }
    for (const path of ['/api/stock/count', '/api/stock/restock'])
      expect(await send('POST', path, { ...entry, hub_id: 2 })).toMatchObject({
        status: 421,
        json: { error: { code: 'other_hub' } },
      })
    expect(asked).toEqual([])
    expect((await send('POST', '/api/stock/count', { ...entry, hub_id: 1 })).status).toBe(200)
  })

  it('the page is served without a token, with a policy that allows only its own files', async () => {
    const { app } = bench()
    const response = await app.request('/')
    expect(await response.text()).toBe('<b>page</b>')
    const policy = response.headers.get('content-security-policy')!
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toMatch(/unsafe|https?:/)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('the local API cycles bins, reconnects controllers, and locks, holds, releases and restarts', async () => {
    const { send, asked } = bench()
    for (const [path, body] of [
      ['/api/bins/1/cycle', { cycles: 2 }],
      ['/api/bins/1/reconnect', {}],
      ['/api/fridges/1/reconnect', {}],
      ['/api/fridges/1/lock', {}],
      ['/api/rows/test', { location }],
      ['/api/bins/3/hold', { held: true }],
      ['/api/hold/orders', { held: false }],
    ] as const)
      expect([path, (await send('POST', path, body)).status]).toEqual([path, 200])
    expect((await send('POST', '/api/restart')).status).toBe(202)
    expect(asked).toEqual([
      ['operate', { name: 'cycle_bin', bin: 1, cycles: 2 }],
      ['operate', { name: 'reconnect_bin', bin: 1 }],
      ['operate', { name: 'reconnect_fridge', fridge: 1 }],
      ['operate', { name: 'close_fridge', fridge: 1 }],
      ['operate', { name: 'test_dispense', location }],
      ['hold', 3, true],
      ['hold', 'orders', false],
      ['restart'],
    ])
  })

  it('the local API takes an acceptance through its steps, and explains each refusal', async () => {
    const { send, asked } = bench()
    expect(await send('GET', '/api/acceptance')).toEqual({
      status: 200,
      json: { protocol: null, parts: ['bin 1'], kept: [] },
    })
    for (const [path, body] of [
      ['begin', { by: 'Ann' }],
      ['begin', { by: 'Ann', parts: ['bin 1'], unassigned_rows: true }],
      ['step', { step: 'open/1' }],
      ['step', { steps: ['row/1/1/1', 'row/1/1/2'] }],
      ['stop', {}],
      ['end', {}],
    ] as const)
      expect([path, await send('POST', `/api/acceptance/${path}`, body)]).toMatchObject([
        path,
        { status: 200 },
      ])
    expect(asked).toEqual([
      ['begin', 'Ann', null],
      ['begin', 'Ann', ['bin 1'], 'with unassigned rows'],
      ['beginSteps', ['open/1']],
      ['beginSteps', ['row/1/1/1', 'row/1/1/2']],
      ['stop'],
      ['end'],
    ])
    expect(await send('POST', '/api/acceptance/decide', { step: 'open/1', verdict: 'passed' })).toMatchObject(
      {
        status: 409,
        json: { error: { code: 'not_now', details: { why: 'Say why.' } } },
      },
    )
    expect(await send('POST', '/api/acceptance/decide', { step: 'open/1', verdict: 'well' })).toMatchObject({
      status: 422,
    })
    for (const body of [{}, { step: 'open/1', steps: ['open/2'] }, { steps: [] }])
      expect(await send('POST', '/api/acceptance/step', body)).toMatchObject({ status: 422 })
    expect(await send('GET', `/api/acceptance/${OPERATION}`)).toMatchObject({ status: 404 })
    expect(await send('GET', '/api/acceptance/1')).toMatchObject({ status: 422 })
  })

  it('an open page receives changes, and only a beat every 15 s while nothing changes', async () => {
    let held = false
    const { app, runtime } = bench({ held: () => ({ orders: held, bins: [] }) })
    const headers = { authorization: `Bearer ${TOKEN}` }
    const reader = (await app.request('/api/live', { headers }))
      .body!.pipeThrough(new TextDecoderStream())
      .getReader()
    const first = (await reader.read()).value!
    expect(first).toMatch(/^event: state\ndata: \{"hub_id":1,/)
    expect(first).not.toContain('receivedMsAgo')
    held = true
    const next = reader.read()
    for (let turn = 0; turn < 5; turn++) {
      await new Promise((resolve) => void setImmediate(resolve))
      runtime.clock.advance(100)
    }
    expect((await next).value).toBe('event: changes\ndata: [{"path":["held","orders"],"value":true}]\n\n')
    // A page without any event for 45 s considers the hub lost.
    const beat = reader.read()
    for (let turn = 0; turn < 160; turn++) {
      await new Promise((resolve) => void setImmediate(resolve))
      runtime.clock.advance(100)
    }
    expect((await beat).value).toBe('event: beat\ndata: {}\n\n')
    await reader.cancel()
  })

  it('a live stream ends when its login ends', async () => {
    const { app, runtime } = bench()
    const login = await app.request('/api/login', { method: 'POST', body: JSON.stringify({ token: TOKEN }) })
    const headers = { cookie: login.headers.get('set-cookie')!.split(';')[0]! }
    const reader = (await app.request('/api/live', { headers })).body!.getReader()
    expect((await reader.read()).done).toBe(false)
    await app.request('/api/logout', { method: 'POST', headers })
    const rest = reader.read()
    for (let turn = 0; turn < 5; turn++) {
      await new Promise((resolve) => void setImmediate(resolve))
      runtime.clock.advance(100)
    }
    expect((await rest).done).toBe(true)
  })
})
