import type { OpenBankShop } from './each-processor.ts'
import type { Shop } from '../../world/shop.ts'

/** A program that dies at the n-th checkpoint after it is armed, and does nothing until it is revived. */
function mortal() {
  let passings = Infinity
  let died: string | undefined
  return {
    checkpoint: (point: string): void => {
      if (died === undefined && --passings <= 0) died = point
      if (died !== undefined) throw new Error(`dead since ${died}`)
    },
    arm: (n: number) => void (passings = n),
    /** The checkpoint where it died, if it did. */
    revive(): string | undefined {
      const point = died
      died = undefined
      passings = Infinity
      return point
    },
  }
}

/**
 * Runs `act` once for each checkpoint that it passes, dies there, and runs `check` after the recovery.
 * Returns the checkpoints.
 */
export async function atEachCheckpoint(
  open: OpenBankShop,
  prepare: (shop: Shop) => Promise<number>,
  act: (shop: Shop, orderId: number) => Promise<unknown>,
  check: (shop: Shop, orderId: number) => Promise<void>,
): Promise<string[]> {
  const points: string[] = []
  for (let n = 1; n < 50; n += 1) {
    const life = mortal()
    const shop = await open({ checkpoint: life.checkpoint })
    const orderId = await prepare(shop)
    life.arm(n)
    await act(shop, orderId).catch((error: unknown) => {
      if (!(error instanceof Error && error.message.startsWith('dead since'))) throw error
    })
    const point = life.revive()
    shop.clock.advance(31_000)
    await shop.work.drain()
    await check(shop, orderId)
    if (point === undefined) return points
    points.push(point)
  }
  throw new Error('it never ends')
}
