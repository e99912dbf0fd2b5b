import { expect, test } from 'vitest'
import { commerceWork } from '../../cloud/commerce/work.ts'
import { sandboxWork } from '../../cloud/commerce/processors/sandbox/sandbox.ts'
import { webhookWork } from '../../cloud/events/webhooks/deliver.ts'
import { hubWork } from '../../cloud/operations/hubs/hub-events.ts'
import { changeWork } from '../../cloud/operations/ssh/bin-changes.ts'
import { noticeWork } from '../../cloud/people/notifications/notices.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import { schedule } from '../../cloud/platform/work/queue.ts'
import { WorkRunner, type WorkKinds } from '../../cloud/platform/work/runner.ts'
import { backupWork } from '../../cloud/operations/backup/schedule.ts'
import { retentionWork } from '../../cloud/retention.ts'
import { onEachDatabase } from '../world/database.ts'
import { testMedia } from './support/media.ts'
import { scriptedPoster } from './events/support/poster.ts'
import { openShop, type Shop } from '../world/shop.ts'

/** Every kind of due work with its own handler. */
function allKinds({ context, services }: Shop): WorkKinds {
  const sender = { send: () => Promise.resolve('sent' as const) }
  return {
    ...commerceWork(services),
    ...noticeWork(context, { ios: sender, android: sender, web: sender, none: sender }),
    ...changeWork({ context, remote: () => Promise.reject(new Error('no hub is asked')) }),
    ...hubWork(context),
    ...backupWork(context, undefined),
    ...webhookWork({ context, addressOf: (key) => key, poster: scriptedPoster(context.runtime.clock) }),
    ...retentionWork(context, testMedia(context)),
    ...testMedia(context).work,
    ...sandboxWork({ context, secret: 'whsec', deliver: () => Promise.resolve(true) }),
  }
}

const NEVER_DUE = 1000

onEachDatabase('all kinds of due work', (open) => {
  test.each([1, 100])(
    'a failing row and a thousand early rows do not delay other rows (batch %i)',
    async (workBatch) => {
      const faults: unknown[] = []
      const shop = await openShop(await open(), { onFault: (error) => faults.push(error) })
      const context: CloudContext = { ...shop.context, settings: { ...shop.context.settings, workBatch } }
      const now = shop.clock.now()
      const looked: string[] = []
      const kinds = Object.entries(allKinds(shop))
      const watched: WorkKinds = Object.fromEntries(
        kinds.map(([name, kind]) => [
          name,
          {
            ...kind,
            run: async (work) => {
              looked.push(`${name} ${work.subject}`)
              if (work.subject === '0') throw new Error('poisoned')
              // Missing subjects, as a handler finds them after a crash.
              return kind.run(work)
            },
          },
        ]),
      )
      for (const [name] of kinds)
        await context.db.transact(async (tx) => {
          // The row that is overdue longest comes first.
          await schedule(tx, name, '0', now - 60_000)
          await schedule(tx, name, ['900000001', '900000002', '900000003'], now)
          const later = Array.from({ length: NEVER_DUE }, (_, index) => String(800_000_000 + index))
          await schedule(tx, name, later, now + 3_600_000)
        })
      await new WorkRunner(context, watched).drain()
      for (const [name] of kinds) {
        const seen = looked.filter((one) => one.startsWith(`${name} `))
        expect(seen).toEqual(
          expect.arrayContaining(
            ['0', '900000001', '900000002', '900000003'].map((subject) => `${name} ${subject}`),
          ),
        )
        expect(seen.some((one) => one.includes(' 8000'))).toBe(false)
      }
      const waiting = await context.db.kysely
        .selectFrom('due_work')
        .select((eb) => eb.fn.countAll<number | string>().as('count'))
        .where('due_at', '=', now + 3_600_000)
        .executeTakeFirstOrThrow()
      expect(Number(waiting.count)).toBeGreaterThanOrEqual(kinds.length * NEVER_DUE)
    },
  )
})
