import { z } from 'zod'
import { eventTypes, TEST_EVENT } from '../model/event-types.ts'
import { Id, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

const EventTypes = z
  .array(z.enum(['*', ...eventTypes]))
  .min(1)
  .max(50)

/** Where an owner wants to be told of events. `secret` is shown at its creation alone. */
export const WebhookEndpoint = z
  .object({
    id: z.string(),
    url: z.string(),
    description: z.string().nullable(),
    /** `["*"]`: every type. */
    event_types: EventTypes,
    /** Empty: every hub of the owner. */
    hub_ids: z.array(Id),
    state: z.enum(['enabled', 'disabled']),
    /** `gone`: it answered 410. `failing`: it took nothing for five days. Null where its owner switched it off. */
    disabled_reason: z.enum(['gone', 'failing']).nullable(),
    created_at: Timestamp,
  })
  .meta({ id: 'WebhookEndpoint' })
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>

/** What a webhook was told, or not. */
export const Delivery = z
  .object({
    id: z.string(),
    event_id: z.string(),
    type: z.enum([...eventTypes, TEST_EVENT]),
    state: z.enum(['pending', 'delivered', 'failed']),
    attempts: z.array(
      z.object({
        at: Timestamp,
        /** Of the answer, where there was one. */
        status: z.int().optional(),
        duration_ms: z.int(),
        error: z.string().optional(),
      }),
    ),
    next_attempt_at: Timestamp.nullable(),
  })
  .meta({ id: 'WebhookDelivery' })
export type Delivery = z.infer<typeof Delivery>

const fields = {
  /** `https` and public, unless the operator says otherwise. */
  url: z.string().min(1).max(2048).meta({ pattern: '^https?://[^\\s]+$' }),
  description: z.string().max(500).nullable().default(null),
  event_types: EventTypes,
  hub_ids: z.array(Id).max(10_000).default([]),
}
const params = z.object({ webhook_id: z.string().max(64) })
const deliveryParams = params.extend({ delivery_id: z.string().max(64) })
const paging = { limit: z.int().min(1).max(100).default(20), cursor: z.string().max(64).optional() }
const page = <T extends z.ZodType>(item: T) =>
  z.object({ data: z.array(item), next_cursor: z.string().nullable(), has_more: z.boolean() })
const hubErrors = ['hub_access_denied', 'hub_not_found'] as const
const body = { url: 'https://integrator.example/larder', event_types: ['order.paid', 'order.ready'] }

/** Events that come by themselves: as Standard Webhooks (https://www.standardwebhooks.com) has them. */
export const ownerWebhookRoutes = defineRoutes(
  {
    interface: 'owner',
    auth: { kind: 'api', scope: 'events:write' },
    rate: 'standard',
    tag: 'Webhooks',
  },
  {
    'owner.webhooks.list': {
      at: 'GET /owners/webhooks',
      auth: { kind: 'api', scope: 'events:read' },
      query: z.object(paging),
      response: page(WebhookEndpoint),
      errors: ['invalid_cursor'],
      summary: 'The webhooks, newest first',
    },
    'owner.webhooks.create': {
      at: 'POST /owners/webhooks',
      idempotent: true,
      body: z.strictObject(fields),
      response: WebhookEndpoint.extend({ secret: z.string() }).meta({ id: 'NewWebhookEndpoint' }),
      status: 201,
      errors: [...hubErrors, 'webhook_limit_reached'],
      summary: 'Add a webhook',
      description:
        "Events are posted as `{type, timestamp, data}`, signed as Standard Webhooks says: headers `webhook-id` (the event's id, the same at every attempt), `webhook-timestamp`, `webhook-signature`. Any 2xx within 15 s takes an event; else it comes again after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h. An event may come more than once, and after a later one. 410 switches the webhook off, and so do five days without any success. Redirects are not followed. The address must be `https` and public: another one is 422 `value_error` at `body.url`. `secret` is shown here and nowhere else. An owner has at most 16 webhooks (`WEBHOOKS_PER_OWNER`), else 409 `webhook_limit_reached`.",
      examples: { body },
    },
    'owner.webhooks.get': {
      at: 'GET /owners/webhooks/{webhook_id}',
      auth: { kind: 'api', scope: 'events:read' },
      params,
      response: WebhookEndpoint,
      errors: ['webhook_not_found'],
      summary: 'A webhook',
    },
    'owner.webhooks.replace': {
      at: 'PUT /owners/webhooks/{webhook_id}',
      params,
      body: z.strictObject({ ...fields, state: z.enum(['enabled', 'disabled']).optional() }),
      response: WebhookEndpoint,
      errors: ['webhook_not_found', ...hubErrors],
      summary: 'Replace what a webhook is told, and where',
      description: '`state` switches it on again, or off; absent it stays as it is. The secret stays.',
      examples: { body: { ...body, state: 'enabled' } },
    },
    'owner.webhooks.delete': {
      at: 'DELETE /owners/webhooks/{webhook_id}',
      params,
      response: z.undefined(),
      status: 204,
      errors: ['webhook_not_found'],
      summary: 'Remove a webhook, and what it was not told yet',
    },
    'owner.webhooks.rotate_secret': {
      at: 'POST /owners/webhooks/{webhook_id}/rotate-secret',
      idempotent: true,
      params,
      body: z.strictObject({ overlap_hours: z.int().min(0).max(168).default(24) }),
      bodyOptional: true,
      response: z.object({ id: z.string(), secret: z.string(), previous_secret_expires_at: Timestamp }),
      errors: ['webhook_not_found', 'webhook_limit_reached'],
      summary: 'Give a webhook a new secret',
      description:
        'The former secret signs beside the new one until it expires; after several rotations each secret signs until the time promised for it. `overlap_hours` 0 ends the former secret at once. Beyond ten former secrets that still sign: 409 `webhook_limit_reached`.',
      examples: { body: { overlap_hours: 24 } },
    },
    'owner.webhooks.test': {
      at: 'POST /owners/webhooks/{webhook_id}/test',
      idempotent: true,
      params,
      response: Delivery,
      status: 202,
      errors: ['webhook_not_found'],
      summary: 'Send a webhook a test',
      description: 'An event `webhook.test`, whatever types it asked for. It is in no list of events.',
    },
    'owner.webhooks.deliveries': {
      at: 'GET /owners/webhooks/{webhook_id}/deliveries',
      auth: { kind: 'api', scope: 'events:read' },
      params,
      query: z.object(paging),
      response: page(Delivery),
      errors: ['webhook_not_found', 'invalid_cursor'],
      summary: 'What a webhook was told, newest first',
    },
    'owner.webhooks.redeliver': {
      at: 'POST /owners/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver',
      idempotent: true,
      params: deliveryParams,
      response: Delivery,
      status: 202,
      errors: ['webhook_not_found', 'delivery_not_found'],
      summary: 'Tell a webhook of an event once more',
      description: 'With the same id, and with the whole schedule of attempts before it.',
    },
  },
)
