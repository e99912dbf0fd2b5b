import { expect, test } from 'vitest'
import { pinDigestOf } from '../../../protocol/model/pin.ts'
import { bench, location } from '../support/local-api-bench.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { TOKEN, OPERATION } from '../../world/local-core.ts'

test.each([
  ['a person with a PIN', { person: 'Ada', shared_token: false }],
  ['a person with a name and the shared token', { person: 'Ben', shared_token: true }],
  ['a caller with only the shared token', { person: null, shared_token: true }],
])('every action of %s is signed', async (_, actor) => {
  const pin = '271828'
  const ada = { name: 'Ada', pin_digest: await pinDigestOf(pin, virtualRuntime().random) }
  const { app, actors } = bench({}, [ada])
  const { person, shared_token } = actor
  const login = await app.request('/api/login', {
    method: 'POST',
    body: JSON.stringify(
      shared_token ? { token: TOKEN, ...(person && { name: person }) } : { name: 'ada', pin },
    ),
  })
  const cookie = login.headers.get('set-cookie')!.split(';')[0]!
  const posts: [path: string, body: object][] = [
    ['hold/orders', { held: true }],
    ['bins/2/hold', { held: true }],
    [`operations/${OPERATION}/settle`, { happened: true }],
    ['stock/count', { location, units: 3 }],
    ['stock/restock', { location, units: 1 }],
    ['doors/main/unlock', {}],
    ['fridges/1/confirm', {}],
    ['controllers/bins/take-over', {}],
    ['dead-letters/replay', {}],
    ['dead-letters/7/drop', {}],
    ['bins/1/open', {}],
    ['bins/1/cycle', {}],
    ['fridges/1/lock', {}],
    ['acceptance/begin', { by: 'Ada' }],
    ['acceptance/step', { step: 'open/1' }],
    ['acceptance/end', {}],
    ['restart', {}],
  ]
  for (const [path, body] of posts) {
    const answer = await app.request(`/api/${path}`, {
      method: 'POST',
      headers: { cookie },
      body: JSON.stringify(body),
    })
    expect([path, answer.ok]).toEqual([path, true])
  }
  expect(actors.map(([, by]) => by)).toEqual(posts.map(() => actor))
})
