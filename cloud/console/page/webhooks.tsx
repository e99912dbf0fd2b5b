import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Delivery, WebhookEndpoint } from '../../../protocol/contract/owner-webhooks.ts'
import { useData } from './data.ts'
import { time, title } from './format.ts'
import { useZone } from './hubs.ts'
import {
  act,
  ActForm,
  Card,
  Heading,
  HeldAct,
  Input,
  Loaded,
  Nothing,
  ZoneNote,
  type Texts,
} from './parts.tsx'
import { Secret } from './secret.tsx'
import { all, ask, can } from './session.ts'

/** Addresses that receive events, and what was delivered to them. */
export function WebhooksPage(): JSX.Element {
  const found = useData(() => all('GET /owners/webhooks', { query: { limit: 100 } }), ['webhooks'])
  const [secret, setSecret] = useState<string | null>(null)
  return (
    <>
      <Heading text="Webhooks" />
      <Secret of="webhook" value={secret} />
      <Loaded of={found}>
        {(webhooks) => (
          <div class="grid gap-3">
            {webhooks.length === 0 && (
              <Card>
                <Nothing>No webhook yet.</Nothing>
              </Card>
            )}
            {webhooks.map((webhook) => (
              <Webhook key={webhook.id} webhook={webhook} onSecret={setSecret} />
            ))}
            {can('events:write') && <NewWebhook onSecret={setSecret} />}
          </div>
        )}
      </Loaded>
    </>
  )
}

type OnSecret = (secret: string) => void

function NewWebhook({ onSecret }: { onSecret: OnSecret }): JSX.Element {
  async function add(texts: Texts): Promise<void> {
    const { url = '', description = '', types = '' } = texts
    const event_types = types.split(/[\s,]+/).filter((type) => type !== '') as WebhookEndpoint['event_types']
    const made = await ask('POST /owners/webhooks', {
      body: {
        url,
        description: description === '' ? null : description,
        event_types: event_types.length > 0 ? event_types : ['*'],
      },
    })
    onSecret(made.secret)
  }
  return (
    <Card title="Add a webhook" name="new">
      <ActForm
        class="grid gap-2 md:grid-cols-[2fr_1fr_1fr_auto] items-end"
        does={() => 'Add the webhook'}
        run={add}
      >
        <Input label="Address (https)" name="url" type="url" required />
        <Input label="Description (optional)" name="description" />
        <Input label="Types of events (empty: all)" name="types" placeholder="order.paid, alarm.raised" />
        <button class="btn btn-primary">Add</button>
      </ActForm>
    </Card>
  )
}

function Webhook({ webhook, onSecret }: { webhook: WebhookEndpoint; onSecret: OnSecret }): JSX.Element {
  const { id, url, description, event_types, hub_ids, state, disabled_reason } = webhook
  const [isOpen, setOpen] = useState(false)
  const params = { webhook_id: id }
  const isOn = state === 'enabled'
  const replace = { url, description, event_types, hub_ids, state: isOn ? 'disabled' : 'enabled' } as const
  return (
    <Card name={id}>
      <h2 class="font-semibold break-all">{url}</h2>
      <p class="text-sm quiet break-words">
        {[
          isOn ? 'enabled' : `disabled${disabled_reason === null ? '' : ` (${disabled_reason})`}`,
          description,
          event_types.join(', '),
          hub_ids.length > 0 ? `hubs ${hub_ids.join(', ')}` : 'all hubs',
        ]
          .filter((text) => text !== null)
          .join(' · ')}
      </p>
      <div class="flex flex-wrap gap-2 mt-2">
        <button class="btn btn-sm" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide deliveries' : 'Show deliveries'}
        </button>
        {can('events:write') && (
          <>
            <button
              class="btn btn-sm"
              onClick={() =>
                void act('Send a test event', () =>
                  ask('POST /owners/webhooks/{webhook_id}/test', { params }),
                )
              }
            >
              Send a test event
            </button>
            <HeldAct
              does={isOn ? 'Disable it' : 'Enable it'}
              label={`${isOn ? 'Disable' : 'Enable'} ${url}`}
              run={() => ask('PUT /owners/webhooks/{webhook_id}', { params, body: replace })}
            >
              {isOn ? 'Disable' : 'Enable'}
            </HeldAct>
            <HeldAct
              does="Give it a new secret"
              label={`Give it a new secret: ${url}`}
              run={async () => {
                const answer = await ask('POST /owners/webhooks/{webhook_id}/rotate-secret', { params })
                onSecret(answer.secret)
              }}
            >
              Give it a new secret
            </HeldAct>
            <HeldAct
              does="Delete the webhook"
              label={`Delete ${url}`}
              run={() => ask('DELETE /owners/webhooks/{webhook_id}', { params })}
            >
              Delete
            </HeldAct>
          </>
        )}
      </div>
      {isOpen && <Deliveries webhook={id} />}
    </Card>
  )
}

function Deliveries({ webhook }: { webhook: string }): JSX.Element {
  const params = { webhook_id: webhook }
  const zone = useZone()
  const found = useData(
    () => all('GET /owners/webhooks/{webhook_id}/deliveries', { params, query: { limit: 50 } }, 50),
    [webhook],
  )
  return (
    <div class="mt-3">
      <Loaded of={found}>
        {(deliveries) => (
          <>
            {deliveries.length === 0 && <Nothing>No delivery yet.</Nothing>}
            <ZoneNote zone={zone} />
            <ul class="text-sm">
              {deliveries.map((delivery) => (
                <DeliveryLine key={delivery.id} webhook={webhook} delivery={delivery} zone={zone} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </div>
  )
}

interface LineProps {
  webhook: string
  delivery: Delivery
  zone: string | undefined
}

function DeliveryLine({ webhook, delivery, zone }: LineProps): JSX.Element {
  const { id, type, state, attempts, next_attempt_at } = delivery
  const last = attempts.at(-1)
  const outcome = last && (last.error ?? (last.status === undefined ? 'no answer' : `HTTP ${last.status}`))
  return (
    <li class="border-b border-base-300 py-1 flex flex-wrap gap-x-3 items-center">
      <b>{type}</b>
      <span class={state === 'failed' ? 'bad' : ''}>{title(state)}</span>
      <span class="quiet grow min-w-0 break-words">
        {last
          ? `${attempts.length} tried, last ${time(last.at, zone)}: ${outcome}, ${last.duration_ms} ms`
          : 'not tried yet'}
        {next_attempt_at !== null && `, next ${time(next_attempt_at, zone)}`}
      </span>
      {can('events:write') && (
        <button
          class="btn btn-sm btn-ghost"
          onClick={() =>
            void act('Deliver it again', () =>
              ask('POST /owners/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver', {
                params: { webhook_id: webhook, delivery_id: id },
              }),
            )
          }
        >
          Deliver again
        </button>
      )}
    </li>
  )
}
