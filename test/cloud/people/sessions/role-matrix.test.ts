import { expect, test } from 'vitest'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import type { Route } from '../../../../protocol/contract/route.ts'
import { routes } from '../../../../protocol/contract/routes.ts'
import { roleNames, roleScopes } from '../../../../protocol/model/scopes.ts'
import { addressOf } from '../../../contract/walk/call.ts'
import { TestBrowser } from '../../../world/browser.ts'
import { emptySqlite } from '../../../world/database.ts'
import { openService } from '../../../world/service.ts'

test.each(roleNames)(
  'the session of a person with the role %s reaches the routes of its scopes only',
  async (role) => {
    const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
    const { cloud, shop } = await openService(() => Promise.resolve(db), { isDemo: true })
    await grantRole(db.kysely, shop.context.runtime, { identity: `demo-${role}`, role, hubs: [1] })
    const browser = new TestBrowser(cloud.app)
    await browser.signIn(`${role.slice(0, 1).toUpperCase()}${role.slice(1)}`)
    const [reached, wanted]: [string[], string[]] = [[], []]
    for (const [id, route] of Object.entries(routes) as [string, Route][]) {
      const { auth, method, produces } = route
      if (auth.kind !== 'api' || produces === 'text/event-stream') continue
      const has = (scope: (typeof auth)['scope'] | undefined) =>
        scope !== undefined && roleScopes[role].includes(scope)
      if (has(auth.scope) || (auth.either && has(auth.further))) wanted.push(id)
      // Most parameters are missing: the scope is checked before them.
      const params = Object.fromEntries(Object.keys(route.params?.shape ?? {}).map((name) => [name, 9]))
      const path = addressOf(route, { as: 'nobody', params })
      const { status, json } = await browser.call(method, path, route.body && { body: {} })
      expect([id, status]).not.toEqual([id, 401])
      const { error } = (json ?? {}) as { error?: { code: string } }
      if (error?.code !== 'scope_missing') reached.push(id)
    }
    expect(reached).toEqual(wanted)
    expect(wanted.length).toBeGreaterThan(20)
  },
)
