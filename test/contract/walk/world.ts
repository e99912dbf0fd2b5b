import { mountsOf, type RateClasses, type Route } from '../../../protocol/contract/route.ts'
import { scopes, type Scope } from '../../../protocol/model/scopes.ts'
import { issueApiKey, type HubSelection } from '../../../cloud/platform/credentials/api-keys.ts'
import type { Mail } from '../../../cloud/operations/alarms/mail.ts'
import type { CallAnswer } from '../../world/cloud.ts'
import type { OpenDatabase } from '../../world/database.ts'
import { openService, type Service } from '../../world/service.ts'
import { addressOf, type Call, type Caller } from './call.ts'

/**
 * The whole service with two owners: hub 1 of the first has products and is online, hub 2 belongs to the
 * other.
 */
export interface World extends Service {
  /** Mails that the service has sent. */
  mails: readonly Mail[]
  /** Sends a call of a route, at its first mount or the one given. */
  ask(route: Route, call: Call, mount?: string): Promise<CallAnswer>
  /** A key of the first owner. */
  key(options?: { scopes?: readonly Scope[]; hubs?: HubSelection; expiresAt?: number }): Promise<string>
  /** A customer with a user, by name; returns the user's id. */
  user(name: string): Promise<number>
}

export async function openWorld(open: OpenDatabase, rates?: RateClasses): Promise<World> {
  const mails: Mail[] = []
  const service = await openService(open, {
    rates,
    sendMail: (mail) => Promise.resolve(void mails.push(mail)),
  })
  const { context } = service.shop
  const q = context.db.kysely
  const first = await q.selectFrom('hubs').selectAll().where('id', '=', 1).executeTakeFirstOrThrow()
  await q.insertInto('owners').values({ name: 'Another' }).execute()
  const { id: _, ...hub } = first
  await q
    .insertInto('hubs')
    .values({ ...hub, owner_id: 2, name: 'Hub of another' })
    .execute()

  const issue = async (
    ownerId: number,
    chosen: readonly Scope[],
    hubs: HubSelection,
    expiresAt: number | null,
  ) =>
    (await issueApiKey(q, context.runtime, { name: 'walk', ownerId, scopes: [...chosen], hubs, expiresAt }))
      .key
  const keys = {
    owner: await issue(1, scopes, '*', null),
    limited: await issue(1, scopes, [1], null),
    'other-owner': await issue(2, scopes, '*', null),
    operator: await issue(1, scopes, '*', null),
  }
  const headersOf = async (caller: Caller): Promise<Readonly<Record<string, string>>> => {
    if (caller === 'nobody') return {}
    if (typeof caller === 'string') return { 'X-API-Key': keys[caller] }
    return 'headers' in caller
      ? caller.headers
      : { Authorization: `Bearer ${await service.tokenOf(caller.customer)}` }
  }

  return {
    ...service,
    mails,
    key: ({ scopes: chosen = scopes, hubs = '*', expiresAt } = {}) =>
      issue(1, chosen, hubs, expiresAt ?? null),
    async user(name) {
      const answer = await service.customer(name, 'POST', '/users/user/bootstrap')
      return (answer.json as { user_id: number }).user_id
    },
    async ask(route, call, mount = mountsOf(route)[0]!) {
      const request = new Request(`http://larder.test${addressOf(route, call, mount)}`, {
        method: route.method,
        headers: { ...(await headersOf(call.as)), ...contentType(call), ...call.headers },
        ...bodyOf(call),
      })
      const answer = await service.cloud.app.request(request)
      const type = answer.headers.get('Content-Type') ?? ''
      const text = type.startsWith('text/event-stream') ? await beginningOf(answer) : await answer.text()
      const isJson = type.startsWith('application/json')
      return { status: answer.status, headers: answer.headers, json: isJson ? JSON.parse(text) : text }
    },
  }
}

/** The beginning of an endless stream. */
async function beginningOf(answer: Response): Promise<string> {
  const reader = answer.body!.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}

const contentType = ({ body, text }: Call): Record<string, string> =>
  body !== undefined || text !== undefined ? { 'Content-Type': 'application/json' } : {}

function bodyOf({ body, text, form }: Call): { body?: string | FormData } {
  if (text !== undefined) return { body: text }
  if (body !== undefined) return { body: JSON.stringify(body) }
  if (form === undefined) return {}
  const data = new FormData()
  for (const [name, value] of Object.entries(form)) for (const part of [value].flat()) data.append(name, part)
  return { body: data }
}

export async function retireHub({ shop }: World): Promise<void> {
  await shop.context.db.kysely
    .updateTable('hubs')
    .set({ hub_status: 'retired', retired_at: shop.clock.now() })
    .execute()
}
