import { applyOperationEntry } from './commerce/catalogue/apply-operations.ts'
import { applyStockEntries } from './commerce/catalogue/apply-stock.ts'
import { applyOrderEntry } from './commerce/fulfilment/apply-hub-entry.ts'
import { applySnapshot, applyStateEntry } from './commerce/fulfilment/apply-states.ts'
import { hubSnapshot } from './commerce/fulfilment/hub-snapshot.ts'
import type { HubDomain } from './gateway/domain.ts'
import {
  applyAlarmEntries,
  applySnapshotAlarms,
  booksAreBehind,
  deadLettersChanged,
  identityConflict,
  tellOfUnknownOperations,
} from './operations/alarms/hub-alarms.ts'
import { streamStalled } from './operations/alarms/stalled-streams.ts'
import { applyMaintenanceEntry } from './operations/maintenance/reports.ts'
import { tellOfHubs } from './operations/hubs/hub-events.ts'

/** What hubs' entries mean to the domains above: the gateway is given it, and knows no order. */
export const hubDomain: HubDomain = {
  applyOrderEntry,
  applyStockEntries,
  async applyOperationEntry(tx, context, hubId, entry, options) {
    await applyOperationEntry(tx, context, hubId, entry, options)
    await tellOfUnknownOperations(tx, context, hubId)
  },
  applyStateEntry,
  async applySnapshot(tx, context, hubId, entry) {
    await applySnapshot(tx, context, hubId, entry)
    await applySnapshotAlarms(tx, context, hubId, entry)
    await tellOfUnknownOperations(tx, context, hubId)
  },
  applyAlarmEntries,
  applyMaintenanceEntry,
  deadLettersChanged,
  identityConflict,
  streamStalled,
  hubsHeard: tellOfHubs,
  booksAreBehind,
  hubSnapshot,
}
