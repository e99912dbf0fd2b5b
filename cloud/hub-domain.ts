import { applyOperationEntry, applySnapshot, applyStockEntries } from './commerce/catalogue/apply-stock.ts'
import { applyOrderEntry } from './commerce/fulfilment/apply-hub-entry.ts'
import { hubSnapshot } from './commerce/fulfilment/hub-snapshot.ts'
import type { HubDomain } from './gateway/domain.ts'

/** What hubs' entries mean to commerce: the gateway is given it, and knows no order. */
export const hubDomain: HubDomain = {
  applyOrderEntry,
  applyStockEntries,
  applyOperationEntry,
  applySnapshot,
  hubSnapshot,
}
