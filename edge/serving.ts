import type { HubCore } from './core/hub-core.ts'
import type { Hub } from './hub.ts'
import type { LocalCore } from './local-api/local-api.ts'
import type { SyncState } from './sync/sync.ts'

/** The interface for the local API and the metrics: of the hub, or of its stand-in while the journal cannot be used. */
export interface Serving extends Pick<Hub, 'controllers' | 'outbox'>, Partial<Pick<Hub, 'certificates'>> {
  readonly core: LocalCore & Pick<HubCore, 'quietMs'> & Partial<Pick<HubCore, 'life'>>
  readonly sync: { state(): SyncState }
}
