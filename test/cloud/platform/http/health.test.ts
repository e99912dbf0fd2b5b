import { expect, test } from 'vitest'
import { Health } from '../../../../cloud/platform/http/health.ts'
import { openCloud } from '../../../world/cloud.ts'
import { virtualRuntime } from '../../../world/clock.ts'

test('a process is ready between its start and its stop while all its dependencies answer', async () => {
  let broker = true
  let database = (): Promise<unknown> => Promise.resolve()
  const runtime = virtualRuntime()
  const health = new Health(runtime.clock, { database: () => database(), broker: () => broker })
  const { call } = await openCloud({ health: () => health })
  const asked = async () => {
    const { status, json } = await call('GET', '/readyz')
    return [status, (json as { failing: string[] }).failing]
  }
  expect(await asked()).toEqual([503, ['starting']])
  health.phase = 'ready'
  expect(await asked()).toEqual([200, []])
  broker = false
  expect(await asked()).toEqual([503, ['broker']])
  database = () => Promise.reject(new Error('away'))
  expect(await asked()).toEqual([503, ['database', 'broker']])
  broker = true
  // The process is alive during all of this, and reveals nothing else to unauthenticated callers.
  const alive = await call('GET', '/healthz')
  expect([alive.status, alive.json, alive.headers.get('Cache-Control')]).toEqual([
    200,
    { status: 'ok' },
    'no-store',
  ])
  health.phase = 'stopping'
  expect(await asked()).toEqual([503, ['stopping']])
})

test('a dependency that does not answer within a second counts as down', async () => {
  const runtime = virtualRuntime()
  const health = new Health(runtime.clock, { database: () => new Promise(() => {}) })
  health.phase = 'ready'
  let failing: string[] | undefined
  void health.failing().then((names) => (failing = names))
  await runtime.clock.pass(999)
  expect(failing).toBeUndefined()
  await runtime.clock.pass(1)
  expect(failing).toEqual(['database'])
})
