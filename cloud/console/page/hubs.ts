import type { Storefront } from '../../../protocol/contract/consumer-products.ts'
import { keep, useData } from './data.ts'
import { ask } from './session.ts'

/** The hubs of the person. */
const readHubs = () => keep('hubs', () => ask('GET /owners/hubs'))
export const useHubs = () => useData(readHubs, ['hubs'])

/** Name, time zone and currency of a hub, also of one that has another owner since. */
export const readHubFacts = (id: number): Promise<Storefront> =>
  keep(`hub ${id}`, () => ask('GET /hubs/{hub_id}', { params: { hub_id: id } }))

/** Facts of a hub. Without a hub: of the first hub that the person reaches; null if there is none. */
export const useHubFacts = (hubId?: number) =>
  useData(async () => {
    const id = hubId ?? (await readHubs())[0]?.id
    return id === undefined ? null : readHubFacts(id)
  }, ['hub', hubId])

/** The time zone of a hub. Without a hub: of the first hub that the person reaches. */
export const useZone = (hubId?: number): string | undefined => useHubFacts(hubId).data?.timezone
