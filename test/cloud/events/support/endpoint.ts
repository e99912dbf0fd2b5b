import { expect } from 'vitest'
import type { WebhookEndpoint } from '../../../../protocol/contract/owner-webhooks.ts'
import { appendEvent } from '../../../../cloud/events/append-event.ts'
import { publish } from '../../../../cloud/events/publish.ts'
import type { Service } from '../../../world/service.ts'
import { numbered } from './numbered.ts'

/** The address of the webhooks that tests add. */
export const url = 'https://integrator.example/hook'
export type Created = WebhookEndpoint & { secret: string }

/** Adds a webhook for all events. */
export async function add({ owner }: Service, body: object = {}): Promise<Created> {
  const { status, json } = await owner('POST', 'webhooks', { url, event_types: ['*'], ...body })
  expect([status, json]).toEqual([201, expect.anything()])
  return json as Created
}
/** Publishes an event of owner 1. */
export async function happen(
  { shop }: Service,
  number = 1,
  type: 'alarm.raised' | 'alarm.cleared' = 'alarm.raised',
) {
  const { context } = shop
  await context.db.transact(async (tx) => {
    appendEvent(tx, context, { type, hubId: 1, data: numbered(number) })
    await Promise.resolve()
  })
  await publish(context)
}
