import { applyOperationEntry } from './commerce/catalogue/apply-operations.ts'
import { applyStockEntries } from './commerce/catalogue/apply-stock.ts'
import { applyOrderEntry } from './commerce/fulfilment/apply-hub-entry.ts'
import { applySnapshot, applyStateEntry } from './commerce/fulfilment/apply-hub-entry.ts'
import { hubSnapshot } from './commerce/fulfilment/hub-snapshot.ts'
import { certificateRequests } from './enrolment/certificate-requests.ts'
import { noteErased, type EnrolmentOptions } from './enrolment/enrol.ts'
import type { HubDomain, StalledPart } from './gateway/domain.ts'
import {
  applyAlarmEntries,
  applySnapshotAlarms,
  booksAreBehind,
  deadLettersChanged,
  identityConflict,
  alarmUnknownOperations,
} from './operations/alarms/hub-alarms.ts'
import { moveFailure, noteMoved } from './operations/ownership/next-cell.ts'
import { applyMaintenanceEntry } from './operations/maintenance/reports.ts'
import { applyHardwareEntry } from './operations/hubs/desired.ts'
import { publishHubChanges } from './operations/hubs/hub-events.ts'
import { clearAlarm, raiseAlarm, type Incident } from './events/alarms/alarms.ts'
import type { CloudContext } from './platform/context.ts'
import type { Tx } from './platform/store/database.ts'

/**
 * Connects hubs' entries to the domains above. The gateway receives these functions, and depends on no
 * domain. `brokerCa`: see `EnrolmentOptions`.
 */
export const hubDomain = ({
  brokerCa = () => undefined,
}: Partial<Pick<EnrolmentOptions, 'brokerCa'>> = {}): HubDomain => ({
  applyOrderEntry,
  applyStockEntries,
  async applyOperationEntry(tx, context, hubId, entry, options) {
    await applyOperationEntry(tx, context, hubId, entry, options)
    alarmUnknownOperations(tx, context, hubId)
  },
  applyStateEntry,
  async applySnapshot(tx, context, hubId, entry) {
    await applySnapshot(tx, context, hubId, entry)
    await applySnapshotAlarms(tx, context, hubId, entry)
    alarmUnknownOperations(tx, context, hubId)
  },
  applyAlarmEntries,
  applyMaintenanceEntry,
  applyHardwareEntry,
  deadLettersChanged,
  identityConflict,
  streamStalled,
  hubsHeard: publishHubChanges,
  booksAreBehind,
  ...certificateRequests({ brokerCa }),
  secretsErased: (context, hubId) =>
    noteErased(context, hubId, (tx) => clearAlarm(tx, context, moveFailure(hubId))),
  hubMoved: noteMoved,
  hubSnapshot,
})

/**
 * A stream between a hub and the cloud has stalled, or advances again. Each part of a stream is an incident
 * of its own.
 */
function streamStalled(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  part: StalledPart,
  error: string | undefined,
): Promise<void> {
  const incident: Incident<'stream_stalled'> = {
    hubId,
    kind: 'stream_stalled',
    incident: part,
    subject: null,
  }
  if (error === undefined) return clearAlarm(tx, context, incident)
  return raiseAlarm(tx, context, {
    ...incident,
    detail: `${part}: ${error.slice(0, 200)}`,
    details: { stream: part, error },
  })
}
