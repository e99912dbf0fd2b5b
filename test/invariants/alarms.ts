import { alarmKinds, incidentOfCode, kindOfCode, type HubAlarmCode } from '../../protocol/model/alarms.ts'
import type { Evidence, Violation } from './evidence.ts'

/**
 * I14: each alarm of a hub and each operation with unknown outcome is an open alarm at the cloud. An alarm
 * that is open at the cloud also holds at the hub, or is about to end. The alarm of a stuck refund ends with the refund.
 */
export function openProblemsAreAlarms({ hub, cloud, lost = new Set() }: Evidence): Violation[] {
  const violations: Violation[] = []
  const say = (text: string) => violations.push({ invariant: 'I14', text })
  const raised = new Set([
    ...hub.alarms.map(({ code, subject }) => nameOf(code as HubAlarmCode, subject)),
    ...hub.unsettled.map(({ operation_id }) => `unknown_operation operation ${operation_id}`),
  ])
  const open = new Map(
    cloud.alarms
      .filter(({ cleared_at }) => cleared_at === null)
      .map((alarm) => [`${alarm.kind} ${alarm.incident}`, alarm]),
  )
  for (const name of raised) if (!open.has(name)) say(`nobody is told of ${name}`)
  for (const [name, { kind, incident, quiet_since }] of open) {
    // The cloud itself raises and clears the alarm about entries that it could not apply.
    const isOfHub = kind === 'unknown_operation' || (alarmKinds[kind].byHub === true && incident !== '')
    if (!isOfHub || alarmKinds[kind].ends === 'when_acknowledged') continue
    if (!raised.has(name) && quiet_since === null && !lost.has(name))
      say(`${name} is over, and people are not told`)
  }
  for (const { id, status } of cloud.refunds)
    if (status !== 'pending' && open.get(`payment_stuck refund ${id}`)?.quiet_since === null)
      say(`refund ${id} is ${status}, and people are not told`)
  const names = cloud.alarms.filter(({ cleared_at }) => cleared_at === null)
  if (open.size < names.length) say('an incident has two open alarms')
  return violations
}

const nameOf = (code: HubAlarmCode, subject: string): string =>
  `${kindOfCode(code)} ${incidentOfCode(code, subject)}`
