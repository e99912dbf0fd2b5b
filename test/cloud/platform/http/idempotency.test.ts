import { expect, test } from 'vitest'
import { ApiError } from '../../../../cloud/platform/api-error.ts'
import type { Answer } from '../../../../cloud/platform/http/answer.ts'
import { idempotently, type KeyedWork } from '../../../../cloud/platform/http/idempotency.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { errorOf, openCloud, type CallOptions } from '../../../world/cloud.ts'
import { onEachDatabase } from '../../../world/database.ts'

const refund = '/api/v1/owners/orders/7/refund'
const HOUR = 3_600_000

/** Work with an answer that is stored unchanged. */
const working = (run: () => Promise<Answer<string>>): KeyedWork => ({
  run: async () => ({ answer: await run() }),
  replay: () => Promise.reject(new Error('there is no memento')),
})

onEachDatabase('Idempotency-Key', (open) => {
  async function setUp(answer: (count: number) => Promise<'refunded' | 'partially_refunded'>) {
    let count = 0
    const app = await openCloud({
      db: await open(),
      handlers: {
        'owner.orders.refund': async ({ params }) => {
          count += 1
          return { success: true, order_id: params.order_id, new_status: await answer(count) }
        },
      },
    })
    const key = await app.key(['orders:write'])
    const send = (name: string, options: CallOptions & { path?: string } = {}) =>
      app.call('POST', options.path ?? refund, {
        key,
        ...options,
        headers: { 'Idempotency-Key': name },
      })
    return { ...app, send, runs: () => count }
  }

  test('a repetition gets the first answer and has no effect', async () => {
    const { send, runs } = await setUp((count) =>
      Promise.resolve(count === 1 ? 'refunded' : 'partially_refunded'),
    )
    const first = await send('a')
    expect(first.headers.get('Idempotent-Replayed')).toBeNull()
    const second = await send('a', { path: `${refund}/` })
    expect(second.json).toEqual(first.json)
    expect(second.headers.get('Idempotent-Replayed')).toBe('true')
    expect(runs()).toBe(1)
    expect((await send('b')).json).toMatchObject({ new_status: 'partially_refunded' })
  })

  test('a stored answer cannot be read from the database without the secret', async () => {
    const { send, context } = await setUp(() => Promise.resolve('refunded'))
    const first = await send('a key of my own')
    expect((await send('a key of my own')).json).toEqual(first.json)
    const kept = JSON.stringify(await context.db.kysely.selectFrom('idempotency_keys').selectAll().execute())
    for (const secret of ['a key of my own', 'refunded', 'new_status']) expect(kept).not.toContain(secret)
  })

  test('another body or another path under the same key is refused', async () => {
    const { send, runs } = await setUp(() => Promise.resolve('refunded'))
    await send('a', { body: { amount: 1 } })
    for (const options of [
      { body: { amount: 2 } },
      { path: refund.replace('7', '8'), body: { amount: 1 } },
    ]) {
      const other = await send('a', options)
      expect([other.status, errorOf(other).error.code]).toEqual([422, 'idempotency_key_reused'])
    }
    expect(runs()).toBe(1)
  })

  test('equal keys of two callers are independent', async () => {
    const { send, key, runs } = await setUp(() => Promise.resolve('refunded'))
    await send('a')
    await send('a', { key: await key(['orders:write']) })
    expect(runs()).toBe(2)
  })

  test('a duplicate in flight is refused, and answered once the first request is done', async () => {
    let finish = (): void => {}
    const { send, runs } = await setUp(async () => {
      await new Promise<void>((resolve) => (finish = resolve))
      return 'refunded'
    })
    const first = send('a')
    await expect.poll(runs).toBe(1)
    const duplicate = await send('a')
    expect([duplicate.status, errorOf(duplicate).error.code]).toEqual([409, 'idempotency_key_in_use'])
    finish()
    expect((await first).status).toBe(200)
    expect((await send('a')).headers.get('Idempotent-Replayed')).toBe('true')
  })

  test('a refusal is stored, an internal error is not', async () => {
    const { send, runs } = await setUp((count) => {
      if (count === 1) throw new ApiError('processor_unavailable')
      if (count === 2) throw new Error('unexpected')
      throw new ApiError('already_refunded')
    })
    expect((await send('a')).status).toBe(503)
    expect((await send('a')).status).toBe(500)
    expect((await send('a')).status).toBe(409)
    const replay = await send('a')
    expect([replay.status, errorOf(replay).error.code]).toEqual([409, 'already_refunded'])
    expect(replay.headers.get('Idempotent-Replayed')).toBe('true')
    expect(runs()).toBe(3)
  })

  test('a request that was refused before its work started is not stored', async () => {
    const { send, runs } = await setUp(() => Promise.resolve('refunded'))
    expect((await send('a', { body: { amount: 0 } })).status).toBe(422)
    expect((await send('a', { body: { amount: 1 } })).status).toBe(200)
    expect(runs()).toBe(1)
  })

  test('a key is deleted after 24 h, and the key of a dead process is free after a minute', async () => {
    let dies = true
    const { send, runs, runtime } = await setUp(async () => {
      // The dying process never returns from here.
      if (dies) await new Promise(() => {})
      return 'refunded'
    })
    void send('a')
    await expect.poll(runs).toBe(1)
    dies = false
    expect((await send('a')).status).toBe(409)
    runtime.clock.clear()
    runtime.clock.advance(60_000)
    expect((await send('a')).status).toBe(200)
    runtime.clock.advance(23 * HOUR)
    expect((await send('a')).headers.get('Idempotent-Replayed')).toBe('true')
    runtime.clock.advance(HOUR)
    expect((await send('a')).headers.get('Idempotent-Replayed')).toBeNull()
    expect(runs()).toBe(3)
  })

  test('a long request keeps its key, unless another request has taken it', async () => {
    const { clock } = virtualRuntime()
    const db = await open()
    const parts = { db, runtime: { ...virtualRuntime(), clock }, log: silentLog }
    const request = { caller: 'key:1', key: 'a', fingerprint: 'f' }
    const answer = { status: 200, headers: {}, body: 'first' }
    const row = () =>
      db.kysely.selectFrom('idempotency_keys').select('locked_until').executeTakeFirstOrThrow()
    const ask = () =>
      idempotently(
        parts,
        request,
        working(() => Promise.resolve({ ...answer, body: 'second' })),
      )
    let finish: (value: typeof answer) => void = () => {}
    const end = new Promise<typeof answer>((resolve) => (finish = resolve))
    const first = idempotently(
      parts,
      request,
      working(() => end),
    )
    const begun = clock.now()
    await expect.poll(() => row().catch(() => null)).toEqual({ locked_until: begun + 60_000 })
    for (let seconds = 15; seconds <= 300; seconds += 15) {
      clock.advance(15_000)
      await expect.poll(row).toEqual({ locked_until: begun + 60_000 + seconds * 1000 })
      await expect(ask()).rejects.toMatchObject({ code: 'idempotency_key_in_use' })
    }
    const taken = { locked_until: clock.now() + 7 }
    await db.kysely.updateTable('idempotency_keys').set(taken).execute()
    clock.advance(15_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(await row()).toEqual(taken)
    finish(answer)
    expect((await first).body).toBe('first')
    expect(await ask()).toMatchObject({ body: 'first' })
    // The key is not renewed any more.
    const after = await row()
    clock.advance(60_000)
    expect(await row()).toEqual(after)
  })

  test.each(['has answered', 'is under way'] as const)(
    'a request that fails after another one, which %s, took its key does not change the key',
    async (how) => {
      const { clock, random } = virtualRuntime()
      const parts = { db: await open(), runtime: { clock, random }, log: silentLog }
      const request = { caller: 'key:1', key: 'a', fingerprint: 'f' }
      const answer = { status: 200, headers: {}, body: 'second' }
      let fail: (why: Error) => void = () => {}
      const first = idempotently(
        parts,
        request,
        working(() => new Promise((_, reject) => (fail = reject))),
      )
      await expect
        .poll(() => parts.db.kysely.selectFrom('idempotency_keys').select('key').execute())
        .toHaveLength(1)
      // The key was not renewed: the database was down, or the process was suspended.
      await parts.db.kysely
        .updateTable('idempotency_keys')
        .set({ locked_until: clock.now() - 1 })
        .execute()
      clock.advance(1)
      let finish: (value: typeof answer) => void = () => {}
      const second = idempotently(
        parts,
        request,
        working(() => new Promise((resolve) => (finish = resolve))),
      )
      await expect.poll(() => finish.length).toBe(1)
      if (how === 'has answered') {
        finish(answer)
        await second
      }
      fail(new Error('the database is away'))
      await expect(first).rejects.toThrow('away')
      const third = idempotently(
        parts,
        request,
        working(() => Promise.resolve({ ...answer, body: 'third' })),
      )
      if (how === 'has answered') expect(await third).toMatchObject({ body: 'second' })
      else await expect(third).rejects.toMatchObject({ code: 'idempotency_key_in_use' })
      finish(answer)
      await second
    },
  )

  test('an answer that can be read again is stored as a memento, and is read again for a repetition', async () => {
    const parts = { db: await open(), runtime: virtualRuntime(), log: silentLog }
    const request = { caller: 'key:1', key: 'a', fingerprint: 'f' }
    let state = 'x'.repeat(40_000)
    const answer = () => ({ status: 200, headers: {}, body: state })
    const work: KeyedWork = {
      run: () => Promise.resolve({ answer: answer(), memento: { order_id: 7 } }),
      replay: (memento) => Promise.resolve({ ...answer(), headers: { memento: JSON.stringify(memento) } }),
    }
    expect((await idempotently(parts, request, work)).body).toBe(state)
    state = 'changed meanwhile'
    const again = await idempotently(parts, request, work)
    expect(again).toEqual({
      status: 200,
      headers: { memento: '{"order_id":7}', 'Idempotent-Replayed': 'true' },
      body: state,
    })
    const [row] = await parts.db.kysely.selectFrom('idempotency_keys').selectAll().execute()
    expect(JSON.stringify(row).length).toBeLessThan(500)
  })

  test('a caller that has stored its share of bytes is refused, may still repeat requests, and does not affect others', async () => {
    const app = await openCloud({
      db: await open(),
      settings: { storedAnswerBytesPerKey: 3000 },
      handlers: {
        'owner.orders.refund': ({ params }) =>
          Promise.resolve({
            success: true as const,
            order_id: params.order_id,
            new_status: 'refunded' as const,
          }),
      },
    })
    const [greedy, honest] = [await app.key(['orders:write']), await app.key(['orders:write'])]
    const send = (key: string, name: string) =>
      app.call('POST', refund, { key, headers: { 'Idempotency-Key': name } })
    let status = 200
    let stored = 0
    for (; status === 200 && stored < 50; stored += 1) status = (await send(greedy, `k${stored}`)).status
    expect(status).toBe(429)
    expect(stored).toBeGreaterThan(2)
    const refused = await send(greedy, 'one more')
    expect(errorOf(refused).error).toMatchObject({
      code: 'rate_limit_exceeded',
      details: { share_of: 'key' },
    })
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(0)
    expect((await send(greedy, 'k0')).headers.get('Idempotent-Replayed')).toBe('true')
    expect((await app.call('POST', refund, { key: greedy })).status).toBe(200)
    expect((await send(honest, 'a')).status).toBe(200)
  })
})
