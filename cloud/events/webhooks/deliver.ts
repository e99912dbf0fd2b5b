import type { Selectable } from 'kysely'
import { Webhook } from 'standardwebhooks'
import type { z } from 'zod'
import type { Delivery } from '../../../protocol/contract/owner-webhooks.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { AddressOf } from '../../platform/media/addresses.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import { raiseAlarm } from '../alarms/alarms.ts'
import { dataText } from '../event-list.ts'
import { signingSecrets, webhookIncident } from './endpoints.ts'
import { listOf, workOf } from '../publish.ts'
import type { Posted, Poster } from './post.ts'

export type Attempt = z.infer<typeof Delivery>['attempts'][number]

/** Number of stored attempts of a delivery. */
const ATTEMPTS_KEPT = 50

interface WebhookParts {
  context: CloudContext
  addressOf: AddressOf
  poster: Poster
}

/** Sends events to webhooks (Standard Webhooks), at least once each, also if this process dies. */
export const webhookWork = (parts: WebhookParts): WorkKinds => ({
  webhook: {
    atOnce: parts.context.settings.webhookConcurrency,
    run: ({ subject }) => deliver(parts, subject),
  },
})

/** The body that a webhook receives for an event. */
export const messageOf = (
  { type, created_at, data }: Pick<Selectable<Tables['events']>, 'type' | 'created_at' | 'data'>,
  addressOf: AddressOf,
): string => `{"type":"${type}","timestamp":"${timestamp(created_at)}","data":${dataText(addressOf, data)}}`

/** The headers that sign a message, with each secret that is valid at an instant. */
export function signed(
  { id, body, at }: { id: string; body: string; at: number },
  secrets: readonly string[],
): Record<string, string> {
  const instant = new Date(at)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, instant, body)).join(' '),
  }
}

async function deliver(parts: WebhookParts, deliveryId: string): Promise<Outcome> {
  const { context, addressOf, poster } = parts
  const { db, runtime, checkpoint } = context
  const found = await read(db.kysely, deliveryId)
  if (found?.delivery.state !== 'pending') return done
  const { endpoint, event } = found
  // A test is sent anyway.
  if (endpoint.state === 'disabled' && event.endpoint_id === null) {
    await conclude(parts, deliveryId, { at: runtime.clock.now(), durationMs: 0, posted: OFF, isWell: false })
    return done
  }
  const at = runtime.clock.now()
  const body = messageOf(event, addressOf)
  const secrets = signingSecrets(endpoint, at)
  const startedAt = runtime.clock.monotonic()
  checkpoint('webhook.before-send')
  const posted = await poster.post(endpoint.url, signed({ id: event.id, body, at }, secrets), body)
  checkpoint('webhook.after-send')
  // This process ends. The next one repeats attempts with an unknown result.
  if (posted === 'stopped') return { next: at }
  const durationMs = Math.round(runtime.clock.monotonic() - startedAt)
  const isWell = endpoint.failing_since === null
  return { next: await conclude(parts, deliveryId, { at, durationMs, posted, isWell }) }
}

const OFF: Posted = { error: 'the webhook is switched off' }

async function read(q: Queries, deliveryId: string) {
  const delivery = await q
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('id', '=', deliveryId)
    .executeTakeFirst()
  if (!delivery) return undefined
  const endpoint = await q
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where('id', '=', delivery.endpoint_id)
    .executeTakeFirst()
  const event = await q
    .selectFrom('events')
    .selectAll()
    .where('seq', '=', delivery.event_seq)
    .executeTakeFirst()
  return endpoint && event && { delivery, endpoint, event }
}

interface Ended {
  at: number
  /** The previous delivery to the webhook succeeded. */
  isWell: boolean
  durationMs: number
  posted: Posted
}

const isTaken = ({ status = 0 }: Posted): boolean => status >= 200 && status < 300

/** Records an attempt and its consequences. Returns when to try again; null if there is no further attempt. */
function conclude(parts: WebhookParts, deliveryId: string, ended: Ended): Promise<number | null> {
  const { context } = parts
  const { at, durationMs, posted } = ended
  return context.db.transact(async (tx) => {
    const now = context.runtime.clock.now()
    const delivery = await tx
      .forUpdate(tx.q.selectFrom('webhook_deliveries').selectAll().where('id', '=', deliveryId))
      .executeTakeFirst()
    // Another process was faster, or the webhook was deleted.
    if (delivery?.state !== 'pending') return null
    const attempt: Attempt = {
      at: timestamp(at),
      ...(posted.status !== undefined && { status: posted.status }),
      duration_ms: durationMs,
      ...(posted.error !== undefined && { error: posted.error }),
    }
    const isDelivered = isTaken(posted)
    const isLast = posted === OFF || posted.status === 410
    const next = isDelivered || isLast ? null : retryAt(context, now, delivery.tries)
    await tx.q
      .updateTable('webhook_deliveries')
      .set({
        attempts: JSON.stringify([...listOf<Attempt>(delivery.attempts), attempt].slice(-ATTEMPTS_KEPT)),
        tries: delivery.tries + 1,
        state: isDelivered ? 'delivered' : next === null ? 'failed' : 'pending',
        next_attempt_at: next,
      })
      .where('id', '=', deliveryId)
      .execute()
    // A webhook without failures costs no further statement.
    if (posted !== OFF && !(isDelivered && ended.isWell)) await judge(tx, parts, delivery, posted, now)
    return next
  })
}

/** When a delivery is tried again after a number of failures; null after the last attempt. */
export function retryAt(
  { settings, runtime }: Pick<CloudContext, 'settings' | 'runtime'>,
  now: number,
  tries: number,
): number | null {
  const pauseMs = settings.webhookRetryMs[tries]
  return pauseMs === undefined ? null : Math.round(now + pauseMs * (1 + runtime.random.fraction() / 10))
}

type DeliveryRow = Selectable<Tables['webhook_deliveries']>

/** Whether no other delivery to the webhook has failed and is tried again: nothing was tried for a while. */
async function isFirstFailure(tx: Tx, { id, endpoint_id, tries }: DeliveryRow): Promise<boolean> {
  if (tries > 0) return false
  const other = await tx.q
    .selectFrom('due_work')
    .innerJoin('webhook_deliveries as d', 'd.id', 'due_work.subject')
    .select('d.id')
    .where('due_work.kind', '=', workOf(endpoint_id))
    .where('d.state', '=', 'pending')
    .where('d.tries', '>', 0)
    .where('d.id', '<>', id)
    .limit(1)
    .executeTakeFirst()
  return other === undefined
}

/**
 * Updates the state of a webhook after an attempt. A webhook that answers 410 Gone, or fails for days, is disabled. The
 * days count from the first failure since which attempts have followed each other.
 */
async function judge(
  tx: Tx,
  { context }: WebhookParts,
  delivery: DeliveryRow,
  posted: Posted,
  now: number,
): Promise<void> {
  const endpointId = delivery.endpoint_id
  const ofEndpoint = () => tx.q.updateTable('webhook_endpoints').where('id', '=', endpointId)
  if (isTaken(posted)) {
    await ofEndpoint().set({ failing_since: null }).where('failing_since', 'is not', null).execute()
    return
  }
  const failing = ofEndpoint().set({ failing_since: now })
  const isFirst = await isFirstFailure(tx, delivery)
  await (isFirst ? failing : failing.where('failing_since', 'is', null)).execute()
  const reason = posted.status === 410 ? 'gone' : 'failing'
  let disabling = ofEndpoint()
    .set({ state: 'disabled', disabled_reason: reason })
    .where('state', '=', 'enabled')
  if (reason === 'failing')
    disabling = disabling.where('failing_since', '<=', now - context.settings.webhookFailingMs)
  const disabled = await disabling.returningAll().executeTakeFirst()
  if (!disabled) return
  context.log.warn({ webhook: endpointId, reason }, 'a webhook is switched off')
  await raiseAlarm(tx, context, {
    ...webhookIncident(disabled),
    detail: reason === 'gone' ? 'it answered 410' : 'it has taken nothing for days',
    details: { url: disabled.url, reason },
  })
}
