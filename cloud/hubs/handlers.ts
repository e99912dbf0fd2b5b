import { z } from 'zod'
import { reachableHubs, requireHub } from '../credentials/hub-access.ts'
import type { CloudContext } from '../context.ts'
import { hubState } from '../gateway/hub-state.ts'
import type { Handlers } from '../http/handler.ts'
import { reportHealth, summarizeHub } from './hub-view.ts'

const Numbers = z.array(z.int())

export const hubHandlers = (context: CloudContext): Handlers<'owner.hubs.list' | 'owner.hubs.health'> => ({
  'owner.hubs.list': async ({ credential }) => {
    const hubs = await reachableHubs(context.db.kysely, credential)
    return hubs.map(summarizeHub)
  },
  'owner.hubs.health': async ({ credential, query }) => {
    const q = context.db.kysely
    const hub = await requireHub(q, credential, query.hub_id)
    const state = await hubState(q, hub.id, context.runtime.clock.now(), context.settings.onlineWithinMs)
    return reportHealth(hub.id, state, {
      bins: Numbers.parse(JSON.parse(hub.disabled_bins)),
      fridges: Numbers.parse(JSON.parse(hub.disabled_fridges)),
    })
  },
})
