import { expect, test } from 'vitest'
import { publish } from '../../../cloud/events/publish.ts'
import { openService } from '../../world/service.ts'
import { onEachDatabase } from '../../world/database.ts'
import { add, url } from './support/endpoint.ts'

const body = { url, event_types: ['*'], hub_ids: [] }

onEachDatabase('the number of webhooks', (open) => {
  test('the 17th webhook of an owner is refused with 409, also simultaneously with the 16th, until one is deleted', async () => {
    const service = await openService(open)
    const { owner, shop } = service
    for (let n = 1; n <= 15; n += 1) await add(service)
    const together = await Promise.all([1, 2, 3].map(() => owner('POST', 'webhooks', body)))
    expect(together.filter(({ status }) => status === 409)).toHaveLength(2)
    const refused = await owner('POST', 'webhooks', body)
    expect(refused).toMatchObject({
      status: 409,
      json: { error: { code: 'webhook_limit_reached', details: { limit: 16 } } },
    })
    const { data } = (await owner('GET', 'webhooks?limit=100')).json as { data: { id: string }[] }
    expect(data).toHaveLength(16)

    // The maximum cost of one event: a delivery for each webhook.
    await shop.paidOrder({ 1: 1 })
    await publish(shop.context)
    const { count } = await shop.context.db.kysely
      .selectFrom('webhook_deliveries')
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    expect(count % 16).toBe(0)

    expect((await owner('DELETE', `webhooks/${data[0]!.id}`)).status).toBe(204)
    expect((await owner('POST', 'webhooks', body)).status).toBe(201)
    expect((await owner('POST', 'webhooks', body)).status).toBe(409)
  })
})
