import { z } from 'zod'
import { reachableHubs, requireHub } from '../../platform/credentials/hub-access.ts'
import type { CloudContext } from '../../platform/context.ts'
import { hubState } from '../../gateway/hub-state.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { describeHub, reportHealth, summarizeHub } from './hub-view.ts'
import { readLayout } from '../../commerce/catalogue/layout.ts'

const Numbers = z.array(z.int())

export const hubHandlers = (
  context: CloudContext,
): Handlers<
  'owner.hubs.list' | 'owner.hubs.ids' | 'owner.hubs.info' | 'owner.hubs.layout' | 'owner.hubs.health'
> => ({
  'owner.hubs.list': async ({ credential }) => {
    const hubs = await reachableHubs(context.db.kysely, credential)
    return hubs.map(summarizeHub)
  },
  'owner.hubs.ids': async ({ credential }) => {
    const hubs = await reachableHubs(context.db.kysely, credential)
    return hubs.map(({ id }) => id)
  },
  'owner.hubs.info': async ({ credential, query }) =>
    describeHub(await requireHub(context.db.kysely, credential, query.hub_id)),
  'owner.hubs.layout': async ({ query }) => ({
    layout: await readLayout(context.db.kysely, query.hub_id),
  }),
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
