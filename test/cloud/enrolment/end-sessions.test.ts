import { expect, test } from 'vitest'
import { sessionWork } from '../../../cloud/enrolment/end-sessions.ts'
import { enrolmentHandlers, revokeHub } from '../../../cloud/enrolment/enrol.ts'
import { renewClaimCode } from '../../../cloud/enrolment/claim-codes.ts'
import { certificateOf, SESSION_WORK } from '../../../cloud/gateway/hub-certificates.ts'
import type { Work } from '../../../cloud/platform/work/runner.ts'
import { freePorts } from '../../support/ports.ts'
import { certificateRequest } from '../../support/certificate-request.ts'
import { openCloud } from '../../world/cloud.ts'
import { onEachDatabase } from '../../world/database.ts'

onEachDatabase('the end of the session of a revoked board', (open) => {
  test('a board that enrols while the former one erases its secrets keeps its certificate', async () => {
    const db = await open()
    const [port] = await freePorts(1)
    // No broker listens there.
    const options = { mqttUrl: `mqtts://127.0.0.1:${port}`, brokerCa: () => undefined }
    const { call, context, runtime } = await openCloud({
      db,
      handlersOf: (made) => enrolmentHandlers(made, options),
    })
    const csr = await certificateRequest()
    async function enrol(): Promise<void> {
      const { code } = await db.transact((tx) => renewClaimCode(tx, context, 1))
      expect((await call('POST', '/api/v1/enroll', { body: { claim_code: code, csr } })).status).toBe(200)
    }
    await enrol()
    await db.transact((tx) => revokeHub(tx, runtime, 1))

    let ended: Promise<unknown> | undefined
    await new Promise<void>((erase) => {
      const work = sessionWork(context, { ...options, isEmbedded: false, erase: () => erase() })
      ended = work[SESSION_WORK]!.run({ kind: SESSION_WORK, subject: '1', attempts: 1 } satisfies Work).catch(
        String,
      )
    })
    await enrol()
    runtime.clock.advance(1000)
    expect(await ended).toMatch('cannot be reached')
    expect(await certificateOf(db.kysely, 1, runtime.clock.now())).toBeDefined()
  })
})
