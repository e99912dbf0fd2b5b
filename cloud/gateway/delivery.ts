import { sleep } from '../../protocol/model/runtime.ts'
import type { CloudContext } from '../platform/context.ts'
import { readPosition } from './outbox-store.ts'
import type { OutboxPlace } from './outbox.ts'

const FIRST_LOOK_MS = 10
const LOOK_MS = 250

/**
 * Waits until a hub has committed an entry of its outbox. False where that takes longer than `timeoutMs`. Under a newer
 * epoch what the entry said is in the snapshot that begins it. Looks into the database, as the acknowledgement may come to
 * another process.
 */
export async function awaitDelivery(
  context: Pick<CloudContext, 'db' | 'runtime'>,
  hubId: number,
  { epoch, seq }: OutboxPlace,
  timeoutMs: number,
): Promise<boolean> {
  return awaitTruth(context, timeoutMs, async () => {
    const position = await readPosition(context.db.kysely, hubId)
    return position !== undefined && position.base >= (position.epoch === epoch ? seq : 1)
  })
}

/** Looks again and again, less and less often, until something holds; false where it does not within `timeoutMs`. */
export async function awaitTruth(
  { runtime: { clock } }: Pick<CloudContext, 'runtime'>,
  timeoutMs: number,
  holds: () => Promise<boolean>,
): Promise<boolean> {
  const deadline = clock.monotonic() + timeoutMs
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LOOK_MS, pauseMs * 2)) {
    if (await holds()) return true
    const leftMs = deadline - clock.monotonic()
    if (leftMs <= 0) return false
    await sleep(clock, Math.min(pauseMs, leftMs))
  }
}
