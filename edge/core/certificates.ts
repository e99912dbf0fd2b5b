import { BROKER_CERTIFICATE as BROKER } from '../../protocol/mqtt/certificates.ts'
import { certificateSubject } from '../../protocol/model/subject.ts'
import type { Context } from './context.ts'
import { setAlarm } from './ledger.ts'

const CODE = 'certificate_expiring'

/** Raises an alarm for each certificate that expires soon, and clears it after the renewal. */
export function checkCertificates(context: Context): void {
  const { state, cloud, settings, certificates } = context
  if (!certificates) return
  const known = certificates()
  const ending = known
    .filter(({ endsAt }) => endsAt - cloud.now() < settings.certificateWarnMs)
    .map(({ name, endsAt }) => ({
      subject: certificateSubject(name),
      detail: `on ${new Date(endsAt).toISOString().slice(0, 10)}`,
    }))
  for (const { subject, detail } of ending) setAlarm(context, CODE, subject, true, detail)
  const subjects = new Set(ending.map(({ subject }) => subject))
  // After a start, the broker's certificate is unknown until the hub has connected to the broker.
  if (!known.some(({ name }) => name === BROKER)) subjects.add(certificateSubject(BROKER))
  for (const { code, subject } of state.alarms.all())
    if (code === CODE && !subjects.has(subject)) setAlarm(context, CODE, subject, false, '')
}
