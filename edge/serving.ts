import type { HubCore } from './core/hub-core.ts'
import type { Hub } from './hub.ts'
import type { LocalCore } from './local-api/local-api.ts'
import type { SyncState } from './sync/sync.ts'

/** What the local API and the metrics read and ask for: of the hub, or of what answers while it cannot use its journal. */
export interface Serving extends Pick<Hub, 'controllers' | 'outbox'>, Partial<Pick<Hub, 'certificates'>> {
  readonly core: LocalCore & Pick<HubCore, 'quietMs'>
  readonly sync: { state(): SyncState }
}
