import { expect, test } from 'vitest'
import { certificateRequests } from '../../../cloud/enrolment/certificate-requests.ts'
import { settled } from '../../../cloud/platform/work/background.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import type { CertificateAnswer } from '../../../protocol/mqtt/session.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { emptySqlite } from '../../world/database.ts'

test('the cloud answers a few requests for certificates at once, each hub once, and all of them', async () => {
  const underWay = new Set<Promise<void>>()
  const context = testContext(
    openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() }),
    virtualRuntime(),
    { underWay },
  )
  const most = context.settings.hubCertificatesAtOnce
  const { certificateRequested } = certificateRequests({ brokerCa: () => undefined })
  const answers: { hubId: number; atOnce: number; answer: CertificateAnswer }[] = []
  const hubs = Array.from({ length: 3 * most }, (_, index) => index + 1)
  for (let asked = 0; asked < 2; asked += 1)
    for (const hubId of hubs)
      certificateRequested(context, hubId, { ca: 'other' }, (answer) => {
        answers.push({ hubId, answer, atOnce: underWay.size })
      })
  expect(underWay.size).toBe(most)
  await settled(context)
  expect(answers.map(({ hubId }) => hubId).toSorted((one, other) => one - other)).toEqual(hubs)
  for (const { answer, atOnce } of answers) {
    expect(answer.ca).toContain('BEGIN CERTIFICATE')
    expect(atOnce).toBeLessThanOrEqual(most)
  }
})
