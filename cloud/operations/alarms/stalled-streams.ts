import { clearAlarm, raiseAlarm, type Incident } from '../../events/alarms/alarms.ts'
import type { StalledPart } from '../../gateway/domain.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'

/** A stream between a hub and the cloud stands still, or advances again. Each part is an incident of its own. */
export function streamStalled(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  part: StalledPart,
  error: string | undefined,
): Promise<void> {
  const incident: Incident = { hubId, kind: 'stream_stalled', incident: part, subject: null }
  if (error === undefined) return clearAlarm(tx, context, incident)
  return raiseAlarm(tx, context, {
    ...incident,
    detail: `${part}: ${error.slice(0, 200)}`,
    details: { stream: part, error },
  })
}
