import { expect, test } from 'vitest'
import { Budget } from '../../../../protocol/model/budget.ts'
import { SpentTime } from '../../../../cloud/platform/limits/spent-time.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'
import { fileOf, jpeg, png } from '../../support/media-samples.ts'

const limits = { total: Infinity, shares: { network: 1000, user: 100 }, atShare: 'refuse' } as const

test('a user who has used up the share of processor time is refused until a minute after the work', () => {
  const { clock } = virtualRuntime(1)
  const time = new SpentTime(new Budget(limits), clock)
  const ada = { network: 'n', user: 'ada' }
  const work = time.begin(ada)
  for (let n = 0; n < 198; n += 1) work.spent(0.5)
  expect(() => {
    work.spent(0.7)
    work.spent(0.7)
  }).toThrow('Your user')
  work.end()
  expect(() => time.begin(ada)).toThrow('Your user')
  expect(() => time.begin({ network: 'n', user: 'eve' })).not.toThrow()
  clock.advance(59_999)
  expect(() => time.begin(ada)).toThrow('Your user')
  clock.advance(1)
  expect(() => time.begin(ada)).not.toThrow()
})

test('pictures of one user cannot use up the processor time of others', async () => {
  const app = await openCloud({ settings: { mediaMsPerUser: 1 } })
  const send = async (sub: string, file: Buffer) => {
    const token = await app.issuer.token({ sub })
    await app.call('POST', '/users/user/bootstrap', { token, body: { email: `${sub}@example.org` } })
    const form = [['file', fileOf(file, 'a')] as const]
    return app.call('PATCH', '/users/user/profile/image', { token, form })
  }
  // 4 MB of a scan that must be read byte by byte take some milliseconds.
  const scan = Buffer.concat([
    jpeg.subarray(0, -2),
    Buffer.from([0xff, 0xda, 0, 2]),
    Buffer.alloc(4_000_000, Buffer.from([0xff, 0])),
  ])
  // The first pictures take longer, until the code is compiled.
  for (const who of ['bob', 'cat', 'dan']) await send(who, png)
  const refused = await send('ada', scan)
  expect([refused.status, errorOf(refused).error.code]).toEqual([429, 'rate_limit_exceeded'])
  expect((await send('ada', png)).status).toBe(429)
  expect((await send('eve', png)).status).toBe(200)
  app.runtime.clock.advance(60_000)
  expect((await send('ada', png)).status).toBe(200)
})
