import { expect, test } from 'vitest'
import { issueApiKey, revokeApiKey } from '../../../cloud/platform/credentials/api-keys.ts'
import { grantRole, revokeRole } from '../../../cloud/platform/credentials/roles.ts'
import { scopes } from '../../../protocol/model/scopes.ts'
import { openService, type Service } from '../../world/service.ts'
import { onEachDatabase } from '../../world/database.ts'

const EVENTS = '/api/v1/owners/events/stream'
const LOGS = '/api/v1/diag/logs/stream'

/** The end of a credential while its stream is open. */
interface Ending {
  name: string
  prepare: (service: Service) => Promise<{
    path: string
    headers: Record<string, string>
    end: () => Promise<unknown>
  }>
}

const withKey =
  (path: string, expiresAt: number | null, end: (service: Service, prefix: string) => Promise<unknown>) =>
  async (service: Service) => {
    const { db, runtime } = service.shop.context
    const request = { name: 'stream', ownerId: 1, scopes, hubs: '*' as const, expiresAt }
    const { key, prefix } = await issueApiKey(db.kysely, runtime, request)
    return { path, headers: { 'X-API-Key': key }, end: () => end(service, prefix) }
  }

const revoke = ({ shop }: Service, prefix: string) =>
  revokeApiKey(shop.context.db.kysely, shop.context.runtime, prefix)
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

const endings: Ending[] = [
  { name: 'an API key that is revoked ends its event stream', prepare: withKey(EVENTS, null, revoke) },
  { name: 'an API key that is revoked ends its log stream', prepare: withKey(LOGS, null, revoke) },
  {
    name: 'an API key that expires ends its event stream',
    async prepare(service) {
      const { clock } = service.shop
      return withKey(EVENTS, clock.now() + 60_000, () => Promise.resolve(clock.advance(60_000)))(service)
    },
  },
  {
    name: 'a role that is revoked ends the event stream of its identity',
    async prepare(service) {
      const { db, runtime } = service.shop.context
      const id = await grantRole(db.kysely, runtime, { identity: 'olga', role: 'owner', hubs: [1] })
      const headers = bearer(await service.tokenOf('olga'))
      return { path: EVENTS, headers, end: () => db.transact((tx) => revokeRole(tx, id)) }
    },
  },
  {
    name: 'an identity token that expires ends the log stream of an administrator',
    async prepare({ shop, issuer }) {
      const exp = shop.clock.now() / 1000 + 30
      const headers = bearer(await issuer.token({ role: 'admin', exp }))
      return { path: LOGS, headers, end: () => Promise.resolve(shop.clock.advance(90_000)) }
    },
  },
  {
    name: 'a user that is deleted ends the stream of an order',
    async prepare(service) {
      const { json } = await service.customer('ada', 'POST', '/users/user/bootstrap')
      const { user_id: userId } = json as { user_id: number }
      const { id } = await service.shop.cart(userId, { 1: 1 })
      return {
        path: `/users/${userId}/orders/${id}/events`,
        headers: bearer(await service.tokenOf('ada')),
        end: () => service.customer('ada', 'DELETE', '/users/user'),
      }
    },
  },
]

onEachDatabase('streams of credentials that end', (open) => {
  test.each(endings)('$name within 5 s', async ({ prepare }) => {
    const service = await openService(open)
    const { clock } = service.shop
    service.cloud.start()
    const { path, headers, end } = await prepare(service)
    const answer = await service.cloud.app.request(path, { headers })
    expect(answer.status).toBe(200)
    const reader = answer.body!.getReader()
    await reader.read()
    let hasEnded = false
    const drained = (async () => {
      for (let next = await reader.read(); !next.done; next = await reader.read());
      hasEnded = true
    })()
    const pass = async () => {
      clock.advance(2500)
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 2))
    }
    for (let second = 0; second < 4; second += 1) await pass()
    expect(hasEnded).toBe(false)
    await end()
    await pass()
    await pass()
    expect(hasEnded).toBe(true)
    await drained
    await service.cloud.stop()
  })
})
