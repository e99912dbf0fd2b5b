import type { Hono } from 'hono'
import { beforeEach, expect, test } from 'vitest'
import { silentLog } from '../../../protocol/model/log.ts'
import { pageAssets } from '../../../protocol/page-assets.ts'
import { Fleet } from '../../../simulator/fleet.ts'
import { memoryStorage } from '../../world/memory-storage.ts'
import { openRoom } from '../../world/room.ts'
import { testConsole } from '../support/console.ts'
import { smallHub } from '../support/hardware.ts'
import { virtualRuntime } from '../../world/clock.ts'

let app: Hono
let texts: Map<string, string>
const text = 'name: one\ndescription: something\nsteps:\n  - wait: 1 s\n'

beforeEach(async () => {
  const bench = openRoom()
  const { clock } = bench
  const { random } = virtualRuntime(7, bench.clock)
  const fleet = new Fleet({
    clock,
    wireKept: 100,
    storageOf: () => memoryStorage(),
    worlds: { names: () => [], read: () => undefined, write() {} },
    make: () => bench.hub,
    mount: async () => async () => {},
  })
  await fleet.add(smallHub)
  texts = new Map([['one', text]])
  const page = pageAssets({ readdirSync: () => [], readFileSync: () => new Uint8Array() }, '/nowhere')
  const about = { fleet, page, clock, random, texts, liveMs: 100, isAllowedHost: () => true, log: silentLog }
  app = testConsole(about).app
})

async function call(method: string, path: string, body?: object) {
  const answer = await app.request(path, { method, ...(body && { body: JSON.stringify(body) }) })
  return { status: answer.status, json: (await answer.json()) as never as Record<string, unknown> }
}

test('scenarios can be stored, read, listed and removed by name', async () => {
  const own = text.replace('name: one', 'name: two')
  expect(await call('PUT', '/api/scenarios/two', { text: own })).toMatchObject({ status: 200 })
  expect(await call('GET', '/api/scenarios/two')).toMatchObject({ json: { name: 'two', text: own } })
  expect(await call('GET', '/api/scenarios')).toMatchObject({ json: [{ name: 'one' }, { name: 'two' }] })
  expect(await call('DELETE', '/api/scenarios/two')).toMatchObject({ status: 200 })
  expect([...texts.keys()]).toEqual(['one'])
})

test.each([
  ['PUT', '/api/scenarios/two', { text }, 422, 'its name in the file is one, not two'],
  ['PUT', '/api/scenarios/TWO', { text }, 422, 'small letters'],
  ['PUT', '/api/scenarios/one', { text: 'name: one' }, 422, 'description'],
  ['PUT', '/api/scenarios/taken', { text: text.replace('one', 'taken') }, 422, 'scenario of the library'],
  ['GET', '/api/scenarios/three', undefined, 404, 'there is no scenario three'],
  ['DELETE', '/api/scenarios/three', undefined, 404, 'there is no scenario three of your own'],
  ['POST', '/api/runs', { hub_id: 1 }, 422, 'the name of a scenario, or its text'],
  ['POST', '/api/runs', { hub_id: 1, name: 'one', text }, 422, 'the name of a scenario, or its text'],
  ['POST', '/api/runs', { hub_id: 9, name: 'one' }, 404, 'hub 9 is not simulated here'],
  ['POST', '/api/runs', { hub_id: 1, name: 'three' }, 404, 'there is no scenario three'],
  ['POST', '/api/runs', { hub_id: 1, name: 'one', parameters: { colour: 1 } }, 422, 'no parameter colour'],
  ['GET', '/api/runs/7', undefined, 404, 'there is no run 7'],
  ['DELETE', '/api/runs/7', undefined, 404, 'run 7 is not under way'],
  ['POST', '/api/steps', { hub_id: 1, step: { dance: {} } }, 422, 'must be one of'],
  ['POST', '/api/steps', { hub_id: 1, step: { network: 'away' } }, 409, 'start the simulator with the demo'],
  ['POST', '/api/recording', { hub_id: 9 }, 404, 'hub 9 is not simulated here'],
  ['DELETE', '/api/recording', undefined, 409, 'nothing is being recorded'],
  ['DELETE', '/api/recording?name=A', undefined, 422, 'small letters'],
  ['POST', '/api/hubs/1/chance', { seed: -1 }, 422, 'seed'],
] as const)(
  'the request %s %s (body: %j) is refused in words',
  async (method, path, body, status, message) => {
    const answer = await call(method, path, body)
    expect(answer).toMatchObject({
      status,
      json: { error: { message: expect.stringContaining(message) as string } },
    })
  },
)

test('the body limit of a scenario text is the limit of a scenario, not that of other bodies', async () => {
  const long = `${text}# ${'x'.repeat(100_000)}\n`
  expect((await call('PUT', '/api/scenarios/one', { text: long })).status).toBe(200)
  expect((await call('PUT', '/api/scenarios/one', { text: 'x'.repeat(300_000) })).status).toBe(413)
})
