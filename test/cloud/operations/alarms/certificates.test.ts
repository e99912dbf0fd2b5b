import { expect, test } from 'vitest'
import { createAuthority } from '../../../../cloud/enrolment/authority.ts'
import { certificateWork, checkCertificates } from '../../../../cloud/operations/alarms/certificates.ts'
import { certificateAdopted } from '../../../../cloud/operations/alarms/hub-alarms.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

const DAY = 86_400_000

onEachDatabase('certificates of the cloud', (open) => {
  test('a certificate that ends within 14 days is an alarm of every owner, until it is renewed', async () => {
    const { context, clock } = await openShop(await open())
    const alarms = () =>
      context.db.kysely
        .selectFrom('alarms')
        .select(['hub_id', 'subject', 'severity', 'message', 'cleared_at'])
        .where('kind', '=', 'certificate_expiring')
        .execute()
    const check = (days: number, broker?: number) =>
      checkCertificates(context, [
        { name: 'MQTT_CA', endsAt: clock.now() + days * DAY },
        ...(broker === undefined ? [] : [{ name: 'broker', endsAt: clock.now() + broker * DAY }]),
      ])
    await check(15, 100)
    expect(await alarms()).toEqual([])
    await check(13, 100)
    await check(12, 100)
    const { length: owners } = await context.db.kysely.selectFrom('owners').select('id').execute()
    const raised = await alarms()
    expect(raised).toHaveLength(owners)
    expect(raised[0]).toMatchObject({ hub_id: null, subject: 'certificate MQTT_CA', severity: 'warning' })
    expect(raised[0]!.message).toMatch(/^Certificate MQTT_CA expires soon \(on \d{4}-\d\d-\d\d\)\.$/)
    await check(90, 100)
    clock.advance(3 * 3_600_000)
    expect((await alarms()).filter(({ cleared_at }) => cleared_at === null)).toEqual([])
  })

  test('the authority of the hubs is an alarm of every owner in its last 180 days, and the end of an overlap in its last 14 days', async () => {
    const { context, clock } = await openShop(await open())
    const check = certificateWork(context, () => [])['certificates']!
    const openAlarms = async () => {
      await check.run({ kind: 'certificates', subject: '', attempts: 1 })
      const alarms = context.db.kysely.selectFrom('alarms').select('subject')
      const rows = alarms.where('kind', '=', 'certificate_expiring').where('cleared_at', 'is', null)
      return (await rows.execute()).map(({ subject }) => subject)
    }
    const { length: owners } = await context.db.kysely.selectFrom('owners').select('id').execute()
    await createAuthority(context, 1)
    clock.advance((20 * 365 - 181) * DAY)
    expect(await openAlarms()).toEqual([])
    clock.advance(2 * DAY)
    expect(await openAlarms()).toEqual(Array.from({ length: owners }, () => 'certificate ca'))
    await createAuthority(context, 2)
    expect(await openAlarms()).toEqual([])

    // An overlap ends soon, and a hub has no certificate of the new authority.
    const now = clock.now()
    const times = { issued_at: now, expires_at: now + 90 * DAY, revoked_at: null }
    await context.db.kysely
      .insertInto('hub_certificates')
      .values({ serial: 'a1', hub_id: 1, ...times })
      .execute()
    const former = context.db.kysely.updateTable('hub_authority').where('id', '=', 1)
    await former.set({ ends_at: now + 20 * DAY }).execute()
    expect(await openAlarms()).toEqual([])
    clock.advance(10 * DAY)
    expect(await openAlarms()).toEqual(Array.from({ length: owners }, () => 'certificate ca overlap'))
    await context.db.kysely.updateTable('hub_certificates').set({ authority: 2 }).execute()
    expect(await openAlarms()).toEqual([])
  })

  test('each certificate that was stored again after a restore is an alarm of its hub, with the remedy', async () => {
    const { context } = await openShop(await open())
    for (const serial of ['a1', 'a1', 'b2'])
      await context.db.transact((tx) => certificateAdopted(tx, context, { hubId: 1, serial }))
    const alarms = await context.db.kysely
      .selectFrom('alarms')
      .select(['hub_id', 'message', 'details'])
      .where('kind', '=', 'database_restored')
      .execute()
    expect(alarms).toMatchObject([{ hub_id: 1 }, { hub_id: 1 }])
    expect(alarms[0]!.message).toContain('larder hubs revoke 1')
    const serials = alarms.map(({ details }) => (JSON.parse(details) as { certificate: string }).certificate)
    expect(serials.toSorted()).toEqual(['a1', 'b2'])
  })
})
