import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { renewClaimCode } from '../../../cloud/enrolment/claim-codes.ts'
import { enrolmentHandlers } from '../../../cloud/enrolment/enrol.ts'
import { adoptCertificate } from '../../../cloud/gateway/lost-certificates.ts'
import { openActs } from '../../../cloud/platform/credentials/lost-acts.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { certificateRequest } from '../../support/certificate-request.ts'
import { openCloud } from '../../world/cloud.ts'
import { onEachDatabase } from '../../world/database.ts'
import { programFolder } from '../support/program.ts'

const HOUR = 3_600_000

onEachDatabase('a restored cloud with a claim code that a board has used since the backup', (openDb) => {
  async function world() {
    const db = await openDb()
    const { context, runtime, call } = await openCloud({
      db,
      handlersOf: (made) => enrolmentHandlers(made, { mqttUrl: 'mqtts://x', brokerCa: () => undefined }),
    })
    const newCode = async () => (await db.transact((tx) => renewClaimCode(tx, context, 1))).code
    const enrol = async (claim_code: string) =>
      call('POST', '/api/v1/enroll', { body: { claim_code, csr: await certificateRequest() } })
    const folder = programFolder()
    const storeActs = openActs(context, folder)
    await storeActs()
    const code = await newCode()
    const backup = await db.kysely
      .selectFrom('hubs')
      .select(['claim_code_digest', 'claim_expires_at'])
      .where('id', '=', 1)
      .executeTakeFirstOrThrow()
    await runtime.clock.pass(HOUR)
    const { json } = await enrol(code)
    const cert = new X509Certificate((json as { certificate: string }).certificate)
    await storeActs()
    await db.kysely.deleteFrom('hub_certificates').execute()
    await db.kysely.deleteFrom('audit_log').execute()
    await db.kysely.updateTable('hubs').set(backup).where('id', '=', 1).execute()
    const restart = () => openActs(context, folder)()
    return { db, runtime, code, cert, enrol, newCode, restart }
  }

  test('the adoption of the board’s certificate ends the code', async () => {
    const { db, runtime, code, cert, enrol } = await world()
    const isAdopted = await adoptCertificate(
      db,
      { clock: runtime.clock, log: silentLog },
      {
        hubId: 1,
        serial: cert.serialNumber.toLowerCase(),
        issuer: 'Larder hubs',
        from: Date.parse(cert.validFrom),
        until: Date.parse(cert.validTo),
      },
    )
    expect(isAdopted).toBe(true)
    expect(await enrol(code)).toMatchObject({ status: 403 })
  })

  test('the list of acts beside the database ends the code at the start, and leaves a later code', async () => {
    const { runtime, code, enrol, newCode, restart } = await world()
    await restart()
    expect(await enrol(code)).toMatchObject({ status: 403 })
    await runtime.clock.pass(HOUR)
    const later = await newCode()
    await restart()
    expect(await enrol(later)).toMatchObject({ status: 200 })
  })
})
