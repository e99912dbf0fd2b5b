import { expect, test } from 'vitest'
import { ProcessorUnavailable, type CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { atEachCheckpoint } from '../../support/each-checkpoint.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'
import { deliver } from '../../support/webhooks.ts'
import { kinds, type KindCase, type Result } from './kinds.ts'

/** Outcomes that a caller gets. */
const expected: readonly string[] = ['card_declined', 'refund_failed', 'processor_unavailable']

async function actAnyway(one: KindCase, shop: Shop, id: number, isRefused: boolean): Promise<void> {
  await one.act(shop, id, isRefused).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && expected.includes(error.code as string))) throw error
  })
}

/** Time passes, events arrive, and due work runs. Then nothing of the kind is under way. */
async function recover(one: KindCase, shop: Shop, forMs = 31_000): Promise<void> {
  for (const ms of [31_000, 20 * 60_000, 3_600_000].filter((each) => each <= forMs)) {
    shop.clock.advance(ms)
    await shop.work.drain()
    await deliver(shop, 2)
  }
  const unfinished = await shop.context.db.kysely
    .selectFrom('money_operations')
    .select(['kind', 'state'])
    .where('kind', '=', one.kind)
    .where('state', 'in', ['unanswered', 'processing'])
    .execute()
  expect(unfinished).toEqual([])
}

/** A processor that loses the answer to one call while `isDown`, after the call was executed or not. */
function losing({ call }: KindCase, doesIt: boolean) {
  const trouble = { isDown: false }
  const wrapProcessor = (real: CardProcessor): CardProcessor => ({
    ...real,
    async [call](request: never) {
      if (!trouble.isDown) return real[call](request)
      if (doesIt) await real[call](request)
      throw new ProcessorUnavailable('the answer is lost')
    },
  })
  return { trouble, wrapProcessor }
}

onEachProcessor('money operations', (open) => {
  for (const one of kinds)
    for (const isRefused of one.canBeRefused ? [false, true] : [false]) {
      const what = `${one.name} that the processor ${isRefused ? 'refuses' : 'carries out'}`
      const done: Result = isRefused ? 'not done' : 'done'

      test(`${what} is booked with its answer, and once`, async () => {
        const shop = await open()
        const id = await one.prepare(shop, isRefused)
        await actAnyway(one, shop, id, isRefused)
        await deliver(shop, 2)
        expect(await one.result(shop, id)).toBe(done)
        await recover(one, shop)
        expect(await one.result(shop, id)).toBe(done)
      })

      test(`${what} agrees with the processor's books wherever the program dies`, async () => {
        const points = await atEachCheckpoint(
          open,
          (shop) => one.prepare(shop, isRefused),
          (shop, id) => actAnyway(one, shop, id, isRefused),
          async (shop, id) => {
            await recover(one, shop)
            const result = await one.result(shop, id)
            if (isRefused) expect(result).toBe('not done')
          },
        )
        for (const moment of ['before-processor', 'after-processor'])
          expect(points).toContain(`${one.kind}.${moment}`)
        // Before and after each commit: the beginning, and the booking of the answer.
        expect(points.filter((point) => point.startsWith('db.')).length).toBeGreaterThanOrEqual(4)
      })

      test.each([
        ['after it did what was asked', true],
        ['before it did what was asked', false],
      ] as const)(`${what}, with the answer lost %s, ends as documented`, async (_name, doesIt) => {
        const { trouble, wrapProcessor } = losing(one, doesIt)
        const shop = await open({ wrapProcessor, onFault: () => undefined })
        const id = await one.prepare(shop, isRefused)
        trouble.isDown = true
        await actAnyway(one, shop, id, isRefused)
        shop.clock.advance(31_000)
        await shop.work.drain()
        trouble.isDown = false
        await recover(one, shop, 3_600_000)
        const end = doesIt ? one.afterLostAnswer : one.afterLostRequest
        expect(await one.result(shop, id)).toBe(isRefused ? 'not done' : end)
      })

      test(`${what} is booked once if the processor's events arrive before its answer, and twice`, async () => {
        let shop: Shop | undefined
        let isQuick = false
        shop = await open({
          wrapProcessor: (real) => ({
            ...real,
            async [one.call](request: never) {
              const answer: unknown = await real[one.call](request)
              if (isQuick) await deliver(shop!, 2)
              return answer
            },
          }),
        })
        const id = await one.prepare(shop, isRefused)
        isQuick = true
        await actAnyway(one, shop, id, isRefused)
        await deliver(shop, 2)
        await recover(one, shop)
        expect(await one.result(shop, id)).toBe(done)
      })
    }
})
