import type { CloudContext } from '../context.ts'
import type { Handlers } from '../http/handler.ts'
import { summarizeHub } from '../hubs/hub-view.ts'
import { bootstrapGuest, bootstrapUser } from './bootstrap.ts'
import { viewUser } from './user-view.ts'

type UserRoutes = 'consumer.users.get' | 'consumer.users.bootstrap' | 'consumer.users.bootstrap_guest'

export const userHandlers = (context: CloudContext): Handlers<UserRoutes> => ({
  'consumer.users.get': async ({ credential }) => {
    const q = context.db.kysely
    const user = await q
      .selectFrom('users')
      .selectAll()
      .where('id', '=', credential.userId)
      .executeTakeFirstOrThrow()
    const hubId = user.selected_hub_id ?? user.default_hub_id
    const hub =
      hubId === null
        ? undefined
        : await q.selectFrom('hubs').selectAll().where('id', '=', hubId).executeTakeFirst()
    return { ...viewUser(user), hub: hub ? summarizeHub(hub) : null }
  },
  'consumer.users.bootstrap': async ({ credential, body }) =>
    viewUser(await bootstrapUser(context, credential, body)),
  'consumer.users.bootstrap_guest': async ({ credential }) =>
    viewUser(await bootstrapGuest(context, credential)),
})
