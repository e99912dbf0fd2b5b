import { z } from 'zod'
import { eventTypes, TEST_EVENT } from '../model/event-types.ts'
import { eventMeanings } from './event-data.ts'
import { valuesIn, namedEnum } from '../model/named-enum.ts'
import { Id, Timestamp, CreatedAt, DurationMs, Limit, Cursor, NextCursor, HasMore } from './fields.ts'
import { defineRoutes } from './route.ts'

const WebhookEventType = z.enum(['*', ...eventTypes]).meta({
  id: 'WebhookEventType',
  description: valuesIn('Type of event; `*` is every type.', { '*': 'every type.', ...eventMeanings }),
})
const EventTypes = z.array(WebhookEventType).min(1).max(50)

const WebhookState = namedEnum('WebhookState', 'State of the webhook.', {
  enabled: 'the service sends events.',
  disabled: 'the service sends nothing.',
})
const WebhookDisabledReason = namedEnum(
  'WebhookDisabledReason',
  'Reason why the service disabled a webhook.',
  {
    gone: 'the address answered 410.',
    failing: 'every attempt failed for five days.',
  },
)
const DeliveryState = namedEnum('DeliveryState', 'State of a delivery.', {
  pending: 'a further attempt is due.',
  delivered: 'an attempt succeeded.',
  failed: 'the last attempt failed.',
})
const DeliveredType = z.enum([...eventTypes, TEST_EVENT]).meta({
  id: 'DeliveredType',
  description: valuesIn('Type of the event.', {
    ...eventMeanings,
    [TEST_EVENT]: 'a test of the webhook.',
  }),
})

/** An address that receives events of an owner. Only its creation returns `secret`. */
export const WebhookEndpoint = z
  .object({
    id: z.string().describe('Id of the webhook (`we_…`).'),
    url: z.string().describe('Address that receives the events.'),
    description: z.string().nullable().describe('Description of the webhook; null if there is none.'),
    event_types: EventTypes.describe('Types of events that the webhook receives; `["*"]` is every type.'),
    hub_ids: z
      .array(Id)
      .describe('Numbers of the hubs that the webhook receives events of; empty is every hub of the owner.'),
    state: WebhookState,
    disabled_reason: WebhookDisabledReason.nullable().describe(
      'Reason why the service disabled the webhook; null if it is enabled, or if its owner disabled it.',
    ),
    created_at: CreatedAt,
  })
  .meta({ id: 'WebhookEndpoint', description: 'An address that receives events.' })
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>

/** One event for one webhook, with its attempts. */
export const Delivery = z
  .object({
    id: z.string().describe('Id of the delivery.'),
    event_id: z.string().describe('Id of the event. It is the `webhook-id` of every attempt.'),
    type: DeliveredType,
    state: DeliveryState,
    attempts: z
      .array(
        z
          .object({
            at: Timestamp.describe('Time of the attempt (UTC).'),
            status: z.int().optional().describe('HTTP status of the answer; absent if there was no answer.'),
            duration_ms: DurationMs,
            error: z.string().optional().describe('Reason of the failure; absent if the attempt succeeded.'),
          })
          .meta({ id: 'DeliveryAttempt', description: 'One attempt of a delivery.' }),
      )
      .describe('Attempts so far, oldest first.'),
    next_attempt_at: Timestamp.nullable().describe('Time of the next attempt (UTC); null if there is none.'),
  })
  .meta({ id: 'WebhookDelivery', description: 'The delivery of one event to one webhook.' })
export type Delivery = z.infer<typeof Delivery>

const fields = {
  url: z
    .string()
    .min(1)
    .max(2048)
    .meta({ pattern: '^https?://[^\\s]+$' })
    .describe('Address that receives the events: `https` and public, unless the operator allows others.'),
  description: z
    .string()
    .max(500)
    .nullable()
    .default(null)
    .describe('Description of the webhook. If it is left out: none.'),
  event_types: EventTypes.describe('Types of events that the webhook receives; `["*"]` is every type.'),
  hub_ids: z
    .array(Id)
    .max(10_000)
    .default([])
    .describe(
      'Numbers of the hubs that the webhook receives events of. If it is left out or empty: every hub of the owner.',
    ),
}
const params = z.object({ webhook_id: z.string().max(64).describe('Id of the webhook.') })
const deliveryParams = params.extend({ delivery_id: z.string().max(64).describe('Id of the delivery.') })
const paging = { limit: Limit, cursor: Cursor }
const page = <T extends z.ZodType>(item: T) =>
  z.object({
    data: z.array(item).describe('Items of this page, newest first.'),
    next_cursor: NextCursor,
    has_more: HasMore,
  })
const hubErrors = ['hub_access_denied', 'hub_not_found'] as const
const body = { url: 'https://integrator.example/larder', event_types: ['order.paid', 'order.ready'] }

/** Events that the service posts, as in Standard Webhooks (https://www.standardwebhooks.com). */
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
      summary: 'List the webhooks, newest first',
      description: 'Without their secrets. A disabled webhook has the reason in `disabled_reason`.',
    },
    'owner.webhooks.create': {
      at: 'POST /owners/webhooks',
      idempotent: true,
      body: z.strictObject(fields),
      response: WebhookEndpoint.extend({
        secret: z.string().describe('Secret that signs the deliveries (`whsec_…`). It is shown only here.'),
      }).meta({ id: 'NewWebhookEndpoint', description: 'A new webhook with its secret.' }),
      status: 201,
      errors: [...hubErrors, 'webhook_limit_reached'],
      summary: 'Add a webhook',
      description:
        'The service posts events as `{type, timestamp, data}`, signed as in Standard Webhooks: headers `webhook-id` (the event’s id, the same in every attempt), `webhook-timestamp`, `webhook-signature`. Any 2xx within 15 s is a success. Otherwise the service tries again after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h. An event may arrive more than once, and after a later one. A 410 disables the webhook at once, five days without success too. Redirects are not followed. The address must be `https` and public, else 422 `value_error` at `body.url`. `secret` is shown only here. An owner has at most 16 webhooks (`WEBHOOKS_PER_OWNER`), else 409 `webhook_limit_reached`.',
      examples: { body },
    },
    'owner.webhooks.get': {
      at: 'GET /owners/webhooks/{webhook_id}',
      auth: { kind: 'api', scope: 'events:read' },
      params,
      response: WebhookEndpoint,
      errors: ['webhook_not_found'],
      summary: 'Read a webhook',
      description: 'Without its secret.',
    },
    'owner.webhooks.replace': {
      at: 'PUT /owners/webhooks/{webhook_id}',
      params,
      body: z.strictObject({
        ...fields,
        state: WebhookState.optional().describe('State of the webhook. If it is left out: unchanged.'),
      }),
      response: WebhookEndpoint,
      errors: ['webhook_not_found', ...hubErrors],
      summary: 'Replace the address, types and hubs of a webhook',
      description:
        'Every field is replaced. `state` enables the webhook again or disables it. The secret stays.',
      examples: { body: { ...body, state: 'enabled' } },
    },
    'owner.webhooks.delete': {
      at: 'DELETE /owners/webhooks/{webhook_id}',
      params,
      response: z.undefined(),
      status: 204,
      errors: ['webhook_not_found'],
      summary: 'Delete a webhook and its pending deliveries',
      description: 'Events are not sent to it any more.',
    },
    'owner.webhooks.rotate_secret': {
      at: 'POST /owners/webhooks/{webhook_id}/rotate-secret',
      idempotent: true,
      params,
      body: z.strictObject({
        overlap_hours: z
          .int()
          .min(0)
          .max(168)
          .default(24)
          .describe('Hours in which the former secret still signs beside the new one, 0 to 168.'),
      }),
      bodyOptional: true,
      response: z.object({
        id: z.string().describe('Id of the webhook.'),
        secret: z.string().describe('New secret (`whsec_…`). It is shown only here.'),
        previous_secret_expires_at: Timestamp.describe('Time until which the former secret signs (UTC).'),
      }),
      errors: ['webhook_not_found', 'webhook_limit_reached'],
      summary: 'Give a webhook a new secret',
      description:
        'The former secret signs beside the new one until it expires. After several rotations each secret signs until the time promised for it. `overlap_hours` 0 ends the former secret at once. More than ten former secrets that still sign are 409 `webhook_limit_reached`.',
      examples: { body: { overlap_hours: 24 } },
    },
    'owner.webhooks.test': {
      at: 'POST /owners/webhooks/{webhook_id}/test',
      idempotent: true,
      params,
      response: Delivery,
      status: 202,
      errors: ['webhook_not_found'],
      summary: 'Send a test event to a webhook',
      description:
        'Sends an event `webhook.test`, whatever types the webhook receives. It is not in the list of events.',
    },
    'owner.webhooks.deliveries': {
      at: 'GET /owners/webhooks/{webhook_id}/deliveries',
      auth: { kind: 'api', scope: 'events:read' },
      params,
      query: z.object(paging),
      response: page(Delivery),
      errors: ['webhook_not_found', 'invalid_cursor'],
      summary: 'List the deliveries of a webhook, newest first',
      description: 'Each delivery lists its attempts with status and error.',
    },
    'owner.webhooks.redeliver': {
      at: 'POST /owners/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver',
      idempotent: true,
      params: deliveryParams,
      response: Delivery,
      status: 202,
      errors: ['webhook_not_found', 'delivery_not_found'],
      summary: 'Deliver an event to a webhook again',
      description: 'Same event id, with the whole schedule of attempts.',
    },
  },
)
