import { raiseAlarm } from '../../../cloud/events/alarms/alarms.ts'
import { FORMER_SECRETS } from '../../../cloud/events/webhooks/endpoints.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

/** A paid order, which publishes an event. */
const paid = ({ shop }: World) => shop.paidOrder({ 1: 1 })

export const eventCases = {
  'owner.events.list': {
    async success(world) {
      await paid(world)
      return { as: 'owner', query: { hub_id: 1 } }
    },
    errors: {
      invalid_cursor: () => Promise.resolve({ as: 'owner', query: { after: 'evt_unknown' } }),
    },
  },
  'owner.events.stream': {
    async success(world) {
      await paid(world)
      return { as: 'owner', query: { hub_id: 1 } }
    },
  },
} satisfies Record<string, RouteCases>

/** A webhook of the owner; returns its id. */
async function webhook({ owner }: World, hub_ids: number[] = []): Promise<string> {
  const body = { url: 'https://integrator.example/', event_types: ['*'], hub_ids }
  return ((await owner('POST', 'webhooks', body)).json as { id: string }).id
}

const fields = { url: 'https://integrator.example/', event_types: ['order.paid'], hub_ids: [1] }
const absent = { webhook_id: 'we_unknown' }

/** A delivery of a webhook. */
async function delivered(world: World): Promise<{ webhook_id: string; delivery_id: string }> {
  const webhook_id = await webhook(world)
  const { json } = await world.owner('POST', `webhooks/${webhook_id}/test`)
  await world.cloud.work.drain()
  return { webhook_id, delivery_id: (json as { id: string }).id }
}

const ofWebhook = (call: Partial<Call> = {}): RouteCases => ({
  success: async (world) => ({ as: 'owner', params: { webhook_id: await webhook(world, [1]) }, ...call }),
  errors: {
    // Another owner's webhook is not found either.
    webhook_not_found: async (world) => ({
      as: 'other-owner',
      params: { webhook_id: await webhook(world) },
      ...call,
      ...(call.body?.['hub_ids'] !== undefined && { body: { ...call.body, hub_ids: [] } }),
    }),
  },
})

export const webhookEndpointCases = {
  'owner.webhooks.list': {
    async success(world) {
      await webhook(world)
      return { as: 'owner' }
    },
    errors: { invalid_cursor: () => Promise.resolve({ as: 'owner', query: { cursor: 'we_unknown' } }) },
  },
  'owner.webhooks.create': {
    success: () => Promise.resolve({ as: 'owner', body: fields }),
    errors: {
      hub_not_found: () => Promise.resolve({ as: 'owner', body: { ...fields, hub_ids: [2] } }),
      hub_access_denied: () => Promise.resolve({ as: 'limited', body: { ...fields, hub_ids: [2] } }),
    },
    elsewhere: { webhook_limit_reached: 'test/cloud/events/webhook-limit.test.ts' },
  },
  'owner.webhooks.get': ofWebhook(),
  'owner.webhooks.replace': {
    ...ofWebhook({ body: fields }),
    errors: {
      ...ofWebhook({ body: fields }).errors,
      hub_not_found: async (world) => ({
        as: 'owner',
        params: { webhook_id: await webhook(world) },
        body: { ...fields, hub_ids: [2] },
      }),
      hub_access_denied: async (world) => ({
        as: 'limited',
        params: { webhook_id: await webhook(world, [1]) },
        body: { ...fields, hub_ids: [2] },
      }),
    },
  },
  'owner.webhooks.delete': ofWebhook(),
  'owner.webhooks.rotate_secret': {
    ...ofWebhook({ body: { overlap_hours: 1 } }),
    errors: {
      ...ofWebhook({ body: { overlap_hours: 1 } }).errors,
      async webhook_limit_reached(world) {
        const call: Call = {
          as: 'owner',
          params: { webhook_id: await webhook(world) },
          body: { overlap_hours: 1 },
        }
        for (let former = 1; former <= FORMER_SECRETS; former += 1)
          await world.ask(routes['owner.webhooks.rotate_secret'], call)
        return call
      },
    },
  },
  'owner.webhooks.test': ofWebhook(),
  'owner.webhooks.deliveries': {
    async success(world) {
      const { webhook_id } = await delivered(world)
      return { as: 'owner', params: { webhook_id } }
    },
    errors: {
      webhook_not_found: () => Promise.resolve({ as: 'owner', params: absent }),
      invalid_cursor: async (world) => ({
        as: 'owner',
        params: { webhook_id: await webhook(world) },
        query: { cursor: 'dlv_unknown' },
      }),
    },
  },
  'owner.webhooks.redeliver': {
    success: async (world) => ({ as: 'owner', params: await delivered(world) }),
    errors: {
      webhook_not_found: () =>
        Promise.resolve({ as: 'owner', params: { ...absent, delivery_id: 'dlv_unknown' } }),
      delivery_not_found: async (world) => ({
        as: 'owner',
        params: { webhook_id: await webhook(world), delivery_id: 'dlv_unknown' },
      }),
    },
  },
} satisfies Record<string, RouteCases>

/** A forced door at a hub; returns the alarm's id. */
async function forced({ shop: { context } }: World, hubId = 1): Promise<string> {
  await context.db.transact((tx) =>
    raiseAlarm(tx, context, {
      hubId,
      kind: 'door_forced',
      subject: 'door main',
      detail: 'open while locked',
      details: { detail: 'open while locked' },
    }),
  )
  const { id } = await context.db.kysely
    .selectFrom('alarms')
    .select('id')
    .where('hub_id', '=', hubId)
    .orderBy('seq', 'desc')
    .executeTakeFirstOrThrow()
  return id
}

export const alarmCases = {
  'owner.alarms.list': {
    async success(world) {
      await forced(world)
      return { as: 'owner', query: { hub_id: 1, state: 'all' } }
    },
    errors: { invalid_cursor: () => Promise.resolve({ as: 'owner', query: { cursor: 'alm_unknown' } }) },
  },
  'owner.alarms.acknowledge': {
    success: async (world) => ({ as: 'owner', params: { alarm_id: await forced(world) } }),
    errors: {
      // Another owner's alarm is not found either.
      alarm_not_found: async (world) => ({ as: 'owner', params: { alarm_id: await forced(world, 2) } }),
    },
  },
} satisfies Record<string, RouteCases>
