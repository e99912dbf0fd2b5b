import { expect, test } from 'vitest'
import { certificateRequests } from '../../../cloud/enrolment/certificate-requests.ts'
import { settled } from '../../../cloud/platform/work/background.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import type { CertificateAnswer } from '../../../protocol/mqtt/session.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { emptySqlite } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'

async function world() {
  const underWay = new Set<Promise<void>>()
  const context = testContext(
    openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() }),
    virtualRuntime(),
    { underWay },
  )
  const most = context.settings.hubCertificatesAtOnce
  for (let hubId = 1; hubId <= 3 * most; hubId += 1) await seedHub(context.db, hubId)
  const { certificateRequested } = certificateRequests({ brokerCa: () => undefined })
  return { underWay, context, certificateRequested, most }
}

test('the cloud answers a few requests for certificates at once, each hub once, and all of them', async () => {
  const { underWay, context, certificateRequested, most } = await world()
  const answers: { hubId: number; atOnce: number; answer: CertificateAnswer }[] = []
  const hubs = Array.from({ length: 3 * most }, (_, index) => index + 1)
  for (let asked = 0; asked < 2; asked += 1)
    for (const hubId of hubs)
      certificateRequested(
        context,
        hubId,
        { ca: 'other' },
        (answer) => void answers.push({ hubId, answer, atOnce: underWay.size }),
        () => true,
      )
  expect(underWay.size).toBe(most)
  await settled(context)
  expect(answers.map(({ hubId }) => hubId).toSorted((one, other) => one - other)).toEqual(hubs)
  for (const { answer, atOnce } of answers) {
    expect(answer.ca).toContain('BEGIN CERTIFICATE')
    expect(atOnce).toBeLessThanOrEqual(most)
  }
})

test('no certificate is signed for a request that waits when the cloud has left the broker', async () => {
  const { context, certificateRequested, most } = await world()
  let isConnected = true
  const answered: number[] = []
  for (let hubId = 1; hubId <= 3 * most; hubId += 1)
    certificateRequested(
      context,
      hubId,
      { ca: 'other' },
      () => void answered.push(hubId),
      () => isConnected,
    )
  isConnected = false
  await settled(context)
  expect(answered).toHaveLength(most)
})
