import { Webhook } from 'standardwebhooks'
import { afterEach, expect, test, vi } from 'vitest'
import { scopes } from '../../../protocol/model/scopes.ts'
import { issueApiKey } from '../../../cloud/platform/credentials/api-keys.ts'
import { openService } from '../../world/service.ts'
import { onEachDatabase } from '../../world/database.ts'
import { add, happen } from './support/endpoint.ts'

const HOUR = 3_600_000
afterEach(() => void vi.useRealTimers())

onEachDatabase('secrets of webhooks', (open) => {
  test('each rotated secret signs until its promised time, and no secret is shown again', async () => {
    const service = await openService(open)
    const { owner, poster, shop, cloud } = service
    const { id, secret: first } = await add(service)
    const secrets = [first]
    const rotate = async (overlap_hours: number): Promise<void> => {
      const { json } = await owner('POST', `webhooks/${id}/rotate-secret`, { overlap_hours })
      const { secret, previous_secret_expires_at: until } = json as Record<string, string>
      expect(until).toBe(new Date(shop.clock.now() + overlap_hours * HOUR).toISOString())
      secrets.push(secret!)
    }
    /** The secrets that verify the next message. */
    const verify = async () => {
      await happen(service)
      await cloud.work.drain()
      vi.useFakeTimers({ toFake: ['Date'], now: shop.clock.now() })
      const { body, headers } = poster.sent.at(-1)!
      const found = secrets.flatMap((secret, index) => {
        try {
          new Webhook(secret).verify(body, { ...headers })
          return [index]
        } catch {
          return []
        }
      })
      vi.useRealTimers()
      return found
    }
    await rotate(24)
    await rotate(1)
    await rotate(3)
    expect(await verify()).toEqual([0, 1, 2, 3])
    shop.clock.advance(HOUR + 1)
    expect(await verify()).toEqual([0, 2, 3])
    await rotate(0)
    expect(await verify()).toEqual([0, 2, 4])
    shop.clock.advance(2 * HOUR)
    expect(await verify()).toEqual([0, 4])
    shop.clock.advance(21 * HOUR)
    expect(await verify()).toEqual([4])
    const shown = (await owner('GET', `webhooks/${id}`)).json
    expect(JSON.stringify(shown)).not.toContain('whsec_')
  })

  test('at most ten former secrets sign; a further rotation is refused until one expires', async () => {
    const { owner, shop, ...service } = await openService(open)
    const { id } = await add({ owner, shop, ...service })
    const rotate = async (overlap_hours: number) =>
      (await owner('POST', `webhooks/${id}/rotate-secret`, { overlap_hours })).status
    for (let rotation = 0; rotation < 10; rotation += 1) expect(await rotate(rotation + 1)).toBe(200)
    expect([await rotate(1), await rotate(0)]).toEqual([409, 200])
    shop.clock.advance(HOUR)
    expect(await rotate(1)).toBe(200)
  })

  test('creation and rotation under one Idempotency-Key happen once, and repeat the secret', async () => {
    const service = await openService(open)
    const { db } = service.shop.context
    const key = (
      await issueApiKey(db.kysely, service.shop.context.runtime, {
        name: 'webhooks',
        ownerId: 1,
        scopes,
        hubs: '*',
        expiresAt: null,
      })
    ).key
    const send = (path: string, body: object, name: string) =>
      service.send(
        'POST',
        `/api/v1/owners/webhooks${path}`,
        { 'X-API-Key': key, 'Content-Type': 'application/json', 'Idempotency-Key': name },
        JSON.stringify(body),
      )
    const fields = { url: 'https://hook.example/in', event_types: ['*'] }
    const [first, again] = [await send('', fields, 'create'), await send('', fields, 'create')]
    expect([first.status, again.status, again.headers.get('Idempotent-Replayed')]).toEqual([201, 201, 'true'])
    expect(again.json).toEqual(first.json)
    const { id } = first.json as { id: string }
    const rotated = await send(`/${id}/rotate-secret`, { overlap_hours: 24 }, 'rotate')
    expect((await send(`/${id}/rotate-secret`, { overlap_hours: 24 }, 'rotate')).json).toEqual(rotated.json)
    expect((await send(`/${id}/rotate-secret`, { overlap_hours: 23 }, 'rotate')).status).toBe(422)
    const rows = await db.kysely.selectFrom('webhook_endpoints').selectAll().execute()
    expect(rows.map((row) => row.secret)).toEqual([(rotated.json as { secret: string }).secret])
  })
})
