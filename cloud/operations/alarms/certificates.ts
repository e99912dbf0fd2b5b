import { BROKER_CERTIFICATE } from '../../../protocol/mqtt/certificates.ts'
import { certificateSubject } from '../../../protocol/model/subject.ts'
import { clearAlarm, everyOwner, raiseAlarm, type Incident } from '../../events/alarms/alarms.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { AUTHORITY, endOfAuthority, endOfOverlap, OVERLAP } from '../../gateway/hub-certificates.ts'
import { endOfReleases } from '../releases/releases.ts'
import { recurring, type WorkKinds } from '../../platform/work/runner.ts'

/** A certificate that this process uses, named by its setting, or `broker` for the certificate of an external broker. */
export interface KnownCertificate {
  name: string
  /** Milliseconds since the Unix epoch. */
  endsAt: number
  /** Time before its end at which the alarm begins. Absent: the value of the settings. */
  warnMs?: number
}

const CHECK_MS = 10 * 60_000

/** Raises an alarm for every owner while a certificate of the cloud expires soon: the hubs of all owners need it. */
export const certificateWork = (
  context: CloudContext,
  certificates: () => readonly KnownCertificate[],
): WorkKinds => ({
  certificates: recurring(context, CHECK_MS, async () => {
    const endsAt = await endOfReleases(context.db.kysely)
    const releases = endsAt === undefined ? [] : [{ name: 'releases', endsAt }]
    const authority = await endOfAuthority(context.db.kysely)
    const own = authority === undefined ? [] : [{ ...authority, name: AUTHORITY }]
    const overlapEnd = await endOfOverlap(context.db.kysely, context.runtime.clock.now())
    const overlap = overlapEnd === undefined ? [] : [{ name: OVERLAP, endsAt: overlapEnd }]
    await checkCertificates(context, [...certificates(), ...releases, ...own, ...overlap])
  }),
})

export function checkCertificates(context: CloudContext, known: readonly KnownCertificate[]): Promise<void> {
  const now = context.runtime.clock.now()
  const kind = 'certificate_expiring' as const
  return context.db.transact(async (tx) => {
    const ending = known.filter(
      ({ endsAt, warnMs = context.settings.certificateWarnMs }) => endsAt < now + warnMs,
    )
    for (const owner of await everyOwner(tx))
      for (const { name, endsAt } of ending)
        await raiseAlarm(tx, context, {
          ...owner,
          kind,
          subject: certificateSubject(name),
          detail: `on ${timestamp(endsAt).slice(0, 10)}`,
          details: { certificate: name, expires_at: timestamp(endsAt) },
        })
    const subjects = new Set(ending.map(({ name }) => certificateSubject(name)))
    // After a start the broker's own certificate is unknown until the broker is connected.
    if (!known.some(({ name }) => name === BROKER_CERTIFICATE))
      subjects.add(certificateSubject(BROKER_CERTIFICATE))
    const open = await tx.q
      .selectFrom('alarms')
      .select(['owner_id', 'subject'])
      .where('kind', '=', kind)
      .where('hub_id', 'is', null)
      .where('cleared_at', 'is', null)
      .execute()
    for (const { owner_id: ownerId, subject } of open) {
      const incident: Incident = { ownerId, kind, subject }
      if (!subjects.has(subject ?? '')) await clearAlarm(tx, context, incident)
    }
  })
}
