import { eventTypes, type EventType } from '../../protocol/model/event-types.ts'
import { sleep } from '../../protocol/model/runtime.ts'
import { messageOf, signed } from '../events/webhooks/deliver.ts'
import {
  addEndpoint,
  newSecret,
  redeliver,
  rotateSecret,
  requireUrl,
  testEndpoint,
  viewEndpoint,
} from '../events/webhooks/endpoints.ts'
import { appendEvent } from '../events/append-event.ts'
import { exampleOfEvent } from '../events/event-example.ts'
import { HttpPoster } from '../events/webhooks/post.ts'
import { eventsAfter, eventText } from '../events/event-list.ts'
import { type EndpointRow, lastPosition, publish } from '../events/publish.ts'
import { viewOrder } from '../commerce/orders/order-view.ts'
import type { CloudContext } from '../platform/context.ts'
import { ApiError } from '../platform/api-error.ts'
import { timestamp } from '../platform/calendar/days.ts'
import { postRulesOf } from '../platform/settings/config.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Queries } from '../platform/store/database.ts'
import { recordAct, type CommandLine, type Invocation, type Options } from './command-line.ts'
import { findOwner, hubsOf, numberOf, required, requireHubs } from './options.ts'

const usage = `Usage:
  larder webhooks add --owner NAME --url URL [--types a,b] [--hubs 1,2] [--description TEXT]
  larder webhooks list [--owner NAME]
  larder webhooks rotate ID [--overlap HOURS]
  larder webhooks test ID
  larder webhooks redeliver ID DELIVERY
  larder webhooks listen --owner NAME [--forward URL]
  larder webhooks trigger TYPE --owner NAME [--hub ID | --order ID]

Addresses that receive events (Standard Webhooks). \`add\` prints the secret, which is never shown again. \`rotate\` prints a new
secret; the former secret also signs for --overlap hours (0 to 168, default 24). After \`test\` and \`redeliver\` the service
sends within seconds.

\`listen\` prints each new event as a line of JSON until it is stopped. --forward posts the events to a URL too, signed with the
secret that \`listen\` prints first: use it to try a receiver on this machine. \`trigger\` makes an event of a type: an example
with negative ids, or the order of --order. The event is in the list of events and goes to webhooks like any other, so
production refuses the command.

Prints JSON. Types: ${eventTypes.join(', ')}.`

export const webhookCommands: CommandLine = {
  usage,
  subcommands: {
    add: {
      options: ['owner', 'url', 'types', 'hubs', 'description'],
      run: add,
    },
    list: {
      options: ['owner'],
      async run({ options, q }) {
        let rows = q.selectFrom('webhook_endpoints').selectAll().orderBy('id')
        if (options['owner'] !== undefined)
          rows = rows.where('owner_id', '=', (await findOwner(q, options['owner'])).id)
        return (await rows.execute()).map((row) => ({ owner_id: row.owner_id, ...viewEndpoint(row) }))
      },
    },
    rotate: {
      options: ['overlap'],
      positionals: ['id'],
      run: rotate,
    },
    test: {
      options: [],
      positionals: ['id'],
      run: async ({ q, options, context }) => testEndpoint(context, await endpointOf(q, options)),
    },
    redeliver: {
      options: [],
      positionals: ['id', 'delivery'],
      async run({ db, q, options, context }) {
        const { id } = await endpointOf(q, options)
        const delivery = options['delivery'] ?? ''
        return inWords(() => db.transact((tx) => redeliver(tx, context, id, delivery)))
      },
    },
    trigger: {
      options: ['owner', 'hub', 'order'],
      positionals: ['type'],
      run: trigger,
    },
    listen: { options: ['owner', 'forward'], run: listen },
  },
}

/** Adds an endpoint and prints its secret once. */
async function add(invocation: Invocation): Promise<unknown> {
  const { options, q, db, context, runtime } = invocation
  const owner = await findOwner(q, required(options, 'owner'))
  const hubs = options['hubs'] === undefined ? '*' : hubsOf(options)
  await requireHubs(q, hubs, owner.id)
  const url = required(options, 'url')
  await inWords(() => requireUrl(posterOf(invocation), url))
  return db.transact(async (tx) => {
    const row = await addEndpoint(tx, context, owner.id, {
      url,
      description: options['description'] ?? null,
      event_types: typesOf(options),
      hub_ids: hubs === '*' ? [] : hubs,
    })
    const detail = { owner_id: owner.id, url }
    await recordAct(tx.q, runtime, { action: 'webhooks.create', object: row.id, detail })
    return { ...viewEndpoint(row), secret: row.secret }
  })
}

/** Makes a new secret; the former one signs for --overlap hours. */
async function rotate({ db, options, context, runtime }: Invocation): Promise<unknown> {
  const overlapHours = numberOf(options, 'overlap', 0, 168) ?? 24
  return inWords(() =>
    db.transact(async (tx) => {
      await tx
        .forUpdate(
          tx.q
            .selectFrom('webhook_endpoints')
            .select('id')
            .where('id', '=', options['id'] ?? ''),
        )
        .execute()
      const endpoint = await endpointOf(tx.q, options)
      const { secret, previousUntil } = await rotateSecret(tx, context, endpoint, overlapHours * 3_600_000)
      const detail = { owner_id: endpoint.owner_id, url: endpoint.url }
      await recordAct(tx.q, runtime, { action: 'webhooks.rotate_secret', object: endpoint.id, detail })
      return { id: endpoint.id, secret, previous_secret_expires_at: timestamp(previousUntil) }
    }),
  )
}

const posterOf = ({ settings, runtime: { clock } }: Invocation) =>
  new HttpPoster({ clock, timeoutMs: settings.limits.rules.webhookTimeoutMs, ...postRulesOf(settings) })

/** Converts an API error to a usage error with the same text. */
async function inWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 422) throw error
    throw new UsageError(error.items?.map(({ msg }) => msg).join('; ') ?? error.message, { cause: error })
  }
}

function typesOf(options: Options): ('*' | EventType)[] {
  if (options['types'] === undefined) return ['*']
  const given = required(options, 'types').split(',')
  const unknown = given.filter((type) => type !== '*' && !eventTypes.some((known) => known === type))
  if (unknown.length > 0) throw new UsageError(`no such types: ${unknown.join(', ')}`)
  return given as ('*' | EventType)[]
}

async function endpointOf(q: Queries, options: Options): Promise<EndpointRow> {
  const id = options['id'] ?? ''
  const row = await q.selectFrom('webhook_endpoints').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) throw new Error(`no such webhook: ${id}`)
  return row
}

function wholeNumberOf(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError(`no such hub: ${text}`)
  return Number(text)
}

/** Publishes an example event, to test its receivers. */
async function trigger({ options, q, db, settings, context, runtime }: Invocation): Promise<unknown> {
  if (settings.NODE_ENV === 'production')
    throw new UsageError('production refuses trigger: integrators would get events that have not happened')
  const type = eventTypes.find((known) => known === options['type'])
  if (type === undefined)
    throw new UsageError(`no such type: ${options['type'] ?? ''}; one of ${eventTypes.join(', ')}`)
  const owner = await findOwner(q, required(options, 'owner'))
  const asked = options['hub'] === undefined ? undefined : wholeNumberOf(options['hub'])
  if (asked !== undefined) await requireHubs(q, [asked], owner.id)
  const first = q.selectFrom('hubs').select('id').where('owner_id', '=', owner.id).orderBy('id')
  const hubId = asked ?? (await first.executeTakeFirst())?.id
  if (hubId === undefined) throw new UsageError(`${options['owner']} has no hub`)
  const orderId = numberOf(options, 'order', 1, Number.MAX_SAFE_INTEGER)
  const data =
    orderId === undefined
      ? exampleOfEvent(type, { hubId, now: runtime.clock.now() })
      : await realOrder(q, context, { orderId, ownerId: owner.id, type })
  const about = orderId === undefined ? hubId : (data as { hub_id: number }).hub_id
  const event = { type, hubId: about, ownerId: owner.id, data }
  const id = await db.transact((tx) => Promise.resolve(appendEvent(tx, context, event)))
  await publish(context)
  await recordAct(q, runtime, { action: 'webhooks.trigger', object: id, detail: { type, hub_id: about } })
  return { id, type, hub_id: about, data }
}

/** An owner's order in its current state. */
async function realOrder(
  q: Queries,
  context: CloudContext,
  { orderId, ownerId, type }: { orderId: number; ownerId: number; type: EventType },
): Promise<object> {
  if (!/^(order|payment)\./.test(type))
    throw new UsageError(`--order needs an event of an order, not ${type}`)
  const order = await q
    .selectFrom('orders')
    .selectAll()
    .where('id', '=', orderId)
    .where('owner_id', '=', ownerId)
    .executeTakeFirst()
  if (!order) throw new Error(`no such order of this owner: ${orderId}`)
  return viewOrder(q, context, order)
}

const POLL_MS = 250

/** Prints an owner's events until it is stopped, and forwards them to an address of the operator's own. */
async function listen({ options, q, settings, terminal, context, runtime }: Invocation): Promise<undefined> {
  const { print, signal } = terminal
  const reader = { ownerId: (await findOwner(q, required(options, 'owner'))).id, hubs: '*' } as const
  const forward = options['forward']
  // The operator has just named this address, so a private address is allowed.
  const rules = { allowHttp: true, allowPrivate: true, timeoutMs: settings.limits.rules.webhookTimeoutMs }
  const poster = new HttpPoster({ clock: runtime.clock, ...rules })
  const secret = newSecret(context)
  const line = (value: object): void => print(`${JSON.stringify(value)}\n`)
  // Only the service signs addresses of files.
  const addressOf = (key: string): string => `store://${key}`
  signal.addEventListener('abort', () => poster.stop())
  await publish(context)
  const begin = await lastPosition(q)
  if (forward !== undefined) line({ forward, secret })
  for (let position = begin; !signal.aborted; await sleep(runtime.clock, POLL_MS)) {
    await publish(context)
    for (const row of await eventsAfter(q, { reader }, position, settings.limits.rules.eventBatch)) {
      position = row.position
      print(`${eventText(addressOf, row)}\n`)
      if (forward === undefined) continue
      const body = messageOf(row, addressOf)
      const message = { id: row.id, body, at: runtime.clock.now() }
      const posted = await poster.post(forward, signed(message, [secret]), body)
      if (posted === 'stopped') break
      line({ forwarded: row.id, ...posted })
    }
  }
  poster.stop()
  return undefined
}
