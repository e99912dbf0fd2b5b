import type { BinHealth, HubHealth } from '../../../protocol/mqtt/session.ts'
import type { z } from 'zod'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { hubState, type HubState } from '../../gateway/hub-state.ts'
import { ApiError } from '../../platform/api-error.ts'
import { readFridges } from '../../commerce/catalogue/layout.ts'

export interface BinRequest {
  query: { bin: number; hub: number }
  credential: OwnerCredential
}

export interface FridgeRequest {
  query: { fridge: number; hub: number }
  credential: OwnerCredential
}

/** The hub as it was last heard, if it has such a bin. That the credential reaches it is known by now. */
export async function requireBin(context: CloudContext, query: BinRequest['query']): Promise<HubState> {
  const state = await readState(context, query.hub)
  if (state.health && !binOf(state.health, query.bin)) throw new ApiError('bin_not_found')
  return state
}

/** Throws `fridge_not_found` where neither the hub's layout nor its own report has such a fridge. */
export async function requireFridge(context: CloudContext, query: FridgeRequest['query']): Promise<void> {
  const fridges = await readFridges(context.db.kysely, query.hub)
  if (fridges.some(({ fridge }) => fridge === query.fridge)) return
  const { health } = await readState(context, query.hub)
  if (!health?.fridges.some(({ fridge_number }) => fridge_number === query.fridge))
    throw new ApiError('fridge_not_found')
}

export const binOf = (health: HubHealth, number: number): z.infer<typeof BinHealth> | undefined =>
  health.bins.find((bin) => bin.bin_number === number)

const readState = ({ db, runtime, settings }: CloudContext, hubId: number): Promise<HubState> =>
  hubState(db.kysely, hubId, runtime.clock.now(), settings.onlineWithinMs)
