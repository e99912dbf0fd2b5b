import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { settled } from '../../cloud/platform/work/background.ts'
import { schedule } from '../../cloud/platform/work/queue.ts'
import { WorkRunner } from '../../cloud/platform/work/runner.ts'
import { retentionWork } from '../../cloud/retention.ts'
import { virtualRuntime } from '../world/clock.ts'
import { testContext } from '../world/context.ts'
import { onEachDatabase } from '../world/database.ts'
import { testMedia } from './support/media.ts'

const DAY = 24 * 3_600_000
const ANCIENT = 400 * DAY

onEachDatabase('guests', (open) => {
  test('a guest without an order is deleted after a month with picture and devices, and all other users stay', async () => {
    const db = await open()
    const runtime = virtualRuntime()
    const context = testContext(db, runtime, { underWay: new Set() })
    const ago = (ms: number): number => runtime.clock.now() - ms
    const media = testMedia(context)
    const q = db.kysely
    const old = ago(31 * DAY)
    const user = (identity: string, is_anonymous: 0 | 1, updated_at: number, profile_image_key?: string) =>
      q
        .insertInto('users')
        .values({
          identity,
          is_anonymous,
          created_at: updated_at,
          updated_at,
          profile_image_key: profile_image_key ?? null,
        })
        .returning('id')
        .executeTakeFirstOrThrow()
    const picture = await media.store({
      folder: 'profiles',
      number: undefined,
      type: { extension: 'png', mimeType: 'image/png', kind: 'image' },
      content: Readable.from([Buffer.from('png')]),
    })
    await db.transact((tx) => media.keep(tx, [picture.key]))
    const unused = await user('unused', 1, old, picture.key)
    await user('plain', 1, old)
    await user('new', 1, ago(29 * DAY))
    await user('customer', 0, ago(ANCIENT))
    const buyer = await user('buyer', 1, ago(ANCIENT))
    await q
      .insertInto('ledger_accounts')
      .values({ user_id: buyer.id, account: 'points', balance: 1, debt: 0, entries: 1 })
      .execute()
    await q
      .insertInto('push_configs')
      .values({
        user_id: unused.id,
        device_id: 'd',
        platform: 'ios',
        push_token: 'sealed',
        token_digest: 'x',
        app_version: null,
        locale: null,
        enabled: 1,
        created_at: old,
        updated_at: old,
      })
      .execute()
    await db.transact((tx) => schedule(tx, 'retention', 'users', runtime.clock.now()))
    await new WorkRunner(context, retentionWork(context, media)).drain()
    const left = await q.selectFrom('users').select('identity').orderBy('identity').execute()
    expect(left.map(({ identity }) => identity)).toEqual(['buyer', 'customer', 'new'])
    expect(await q.selectFrom('push_configs').selectAll().execute()).toEqual([])
    await settled(context)
    expect(await q.selectFrom('media').selectAll().execute()).toEqual([])
  })
})
